"""Having workers at hand before they are needed."""

from __future__ import annotations

import os

from holdfast._system import starts


def warm(*modules: str, wait: bool = True) -> None:
    """Start the process that workers are forked from, import ``modules`` there, and wait until it is ready.

    With ``wait=False`` it returns at once. As the first lines of a program, before ``import torch``, that process then
    imports torch while the program does, and nobody waits for it later::

        import holdfast
        holdfast.warm(wait=False)

    Without a call it is started, not waited for, when the first loader with workers is made.
    """
    starts.warm(modules, wait=wait)


def warm_early(start: str, workers: int) -> None:
    """What the constructor of a loader does; ``HOLDFAST_WARM=0`` turns it off."""
    if os.environ.get("HOLDFAST_WARM", "1") != "0":
        starts.warm_for(start, workers)
