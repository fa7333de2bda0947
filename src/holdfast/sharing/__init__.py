"""``share``: one copy in memory for all processes, that behaves as what it replaces. See docs/design/08-sharing.md."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch.nn import Module

from .arrays import SharedArray
from .locks import Lock
from .memory import memory_of
from .packed import PackedList, PackedText
from .packed_dict import PackedDict
from .stowing import stow
from .survey import Survey
from .tensors import ReadOnlyTensor, SharedParameter, SharedTensor

__all__ = [
    "Lock",
    "PackedDict",
    "PackedList",
    "PackedText",
    "ReadOnlyTensor",
    "SharedArray",
    "SharedParameter",
    "SharedTensor",
    "lock_of",
    "share",
]

T = TypeVar("T")


def share(x: T, *, readonly: bool = False) -> T:
    """The same value in memory that all processes see which it is handed to: as an argument, inside a data set, through
    a queue, a pipe or a pickle, or inherited by a fork.

    ::

        x = share(torch.zeros(1000))        # a tensor; what one process writes, all see
        with x.lock:                        # given back by the kernel when its holder is killed
            x[3] += 1

        dataset = share(dataset)            # its arrays, and its long lists, dicts and strings
        model = share(model)                # its parameters and buffers, in place

    Arrays and tensors stay arrays and tensors, views of them travel as views. Lists and dicts of 1,024 elements or
    more, and strings of 64 KiB, are packed: they can be read like before, and no longer changed. Smaller ones, and data
    sets, are made again around what is shared in them; the one that was given stays as it was.

    There is nothing to close: memory goes when the last process has dropped it, and nothing remains when all of them
    are killed. Whoever hands a shared thing on may drop it at once.

    Args:
        readonly: whoever writes gets an exception, and the memory is sealed: no process can change it.

    Raises:
        CannotShare: there is nothing in it that could lie in shared memory.
    """
    survey = Survey(readonly)
    plan = survey.plan(x, "x", is_root=True)
    if plan is None:
        return x
    return plan(stow(survey.leaves, readonly))  # type: ignore[no-any-return]


def lock_of(x: Any) -> Lock:
    """The lock of something that was shared, also of a module, a container or a data set."""
    found = _lock_in(x)
    if found is None:
        raise TypeError(f"{type(x).__qualname__} is not shared, so there is no lock for it: share(x) first")
    return found


def _lock_in(x: Any) -> Lock | None:
    if isinstance(x, torch.Tensor):
        memory = memory_of(x)
        return memory.lock if memory else None
    if isinstance(x, (SharedArray, PackedList, PackedDict, PackedText)):
        return x.lock
    parts: Any = ()
    if isinstance(x, Module):
        parts = (*x.parameters(), *x.buffers())
    elif isinstance(x, (list, tuple)):
        parts = x
    elif isinstance(x, dict) or hasattr(x, "__dict__"):
        parts = (x if isinstance(x, dict) else vars(x)).values()
    return next((lock for lock in map(_lock_in, parts) if lock), None)
