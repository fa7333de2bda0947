"""Breaks things on purpose, for our tests and for yours. Importing this imports neither torch nor anything else.

``Faulty``, ``DiesAt``, ``HangsAt`` and kin: data sets that kill, stop or fail the worker that loads a certain sample.
``World``, ``walk``, ``live``, ``BrokenPromise``: a simulated world in which the core lives thousands of lives a second;
``task_walk``: the same for a pool's.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .faults import (
        AbortsAt,
        DiesAt,
        ExitsAt,
        Fault,
        Faulty,
        GivesAt,
        HangsAt,
        Once,
        QuitsAt,
        RaisesAt,
        SegfaultsAt,
        SpinsAt,
        StarvesAt,
        StopsAt,
    )
    from .referee import BrokenPromise
    from .task_world import task_walk
    from .walks import live, some_limits, walk
    from .world import World

__all__ = [
    "AbortsAt",
    "BrokenPromise",
    "DiesAt",
    "ExitsAt",
    "Fault",
    "Faulty",
    "GivesAt",
    "HangsAt",
    "Once",
    "QuitsAt",
    "RaisesAt",
    "SegfaultsAt",
    "SpinsAt",
    "StarvesAt",
    "StopsAt",
    "World",
    "live",
    "some_limits",
    "task_walk",
    "walk",
]

_WHERE = {
    "BrokenPromise": "referee",
    "World": "world",
    "live": "walks",
    "some_limits": "walks",
    "task_walk": "task_world",
    "walk": "walks",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"{__name__}.{_WHERE.get(name, 'faults')}"), name)
