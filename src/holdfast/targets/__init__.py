"""What a command is to look at: a data set, a loader, or a program, found by the text that names it.

* ``mistake``  what is wrong with what the user wrote, in one sentence
* ``program``  runs a script or a module as ``__main__``
* ``project``  the settings in ``pyproject.toml``
* ``target``   ``module:attribute``, ``file.py:attribute`` or a script, as a data set and its loader
"""
