"""Decides what the loader does next; acts on nothing.

Events come in, commands go out, and everything in between is a value. No file here imports the operating system,
a clock, a thread or torch, so thousands of worker lives can be played through in a second.

==============  ============================================================
``events``      what can happen
``commands``    what can be decided
``limits``      what the user allows
``machine``     the one way in: ``Machine.handle(event, now)``
``schedule``    what every way of handing out work has in common
``free``        map-style: any worker may load any batch
``bound``       iterable: every seat has its own stream
``shelf``       results that wait for their turn
``seats``       a place for a worker, and who sits there
``budget``      restarts: when, how many, and when to give up
``suspects``    which sample keeps killing workers
``pace``        how long a batch normally takes
``story``       the last events and what was decided
==============  ============================================================
"""
