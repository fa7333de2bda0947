"""Having workers at hand before they are needed."""

from __future__ import annotations

import os

from holdfast._system import starts


def warm(*modules: str) -> None:
    """Start the process that workers are forked from, import ``modules`` there, and wait until it is ready.

    Without a call it is started, not waited for, when the first loader with workers is made.
    """
    starts.warm(modules, wait=True)


def warm_early(start: str, workers: int) -> None:
    """What the constructor of a loader does; ``HOLDFAST_WARM=0`` turns it off."""
    if os.environ.get("HOLDFAST_WARM", "1") != "0":
        starts.warm_for(start, workers)
