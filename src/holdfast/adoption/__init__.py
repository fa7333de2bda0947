"""``holdfast run``: a program that does not know us gets our loader wherever it asks for torch's.

The program runs in an interpreter of its own, as Python runs it: nothing of its surroundings has to be imitated. Ours
is a ``sitecustomize`` in its import path and a variable in its environment, which reach every interpreter that it
starts in turn: ranks, spawned children, launchers.

* ``options``    what can be said on the command line or in ``pyproject.toml``, and what is valid
* ``settings``   where ``[tool.holdfast.run]`` is found
* ``launch``     the program's command and environment
* ``site``       the folder with the ``sitecustomize``
* ``arrival``    what it does in each interpreter: wait for torch, warm the zygote, sum up at the end
* ``hook``       a call when a module has been imported
* ``diversion``  torch's constructor is another one from then on
* ``making``     which makes ours, with the options of the run
* ``usage``      what the loaders of a process did
* ``letters``    how the processes of a run tell that to the one that sums up
* ``places``     how paths are shown
* ``remarks``    what lint says of the program
* ``summary``    all of it, when the program ends
* ``text``       ... as lines for people
"""
