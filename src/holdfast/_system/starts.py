"""Which ways to start a worker this system has, and which of them is meant."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

HAS_FORK = hasattr(os, "fork")
LOADING = "holdfast._worker.worker"  # and with it torch, and all else that a worker of a loader needs
STARTS = ("auto", "zygote", "standby", "fork", "spawn", "forkserver")


def resolve(start: str, context: Any) -> str:
    """The launcher that ``start`` and ``multiprocessing_context`` ask for; an error that lists what exists."""
    if start not in STARTS:
        raise ValueError(f"start should be one of {', '.join(map(repr, STARTS))}, but got start={start!r}")
    if context is not None and start == "auto":
        start = context if isinstance(context, str) else context.get_start_method() or "auto"
        if start not in STARTS:
            raise ValueError(f"multiprocessing_context should be one of Python's own, but starts by {start!r}")
    if start == "auto":
        return "zygote" if HAS_FORK else "standby"
    if start == "forkserver":
        return "zygote" if HAS_FORK else _refuse(start)  # the zygote is a fork server, one that is kept clean and warm
    if start in ("zygote", "fork") and not HAS_FORK:
        return _refuse(start)
    if start == "spawn" and not HAS_FORK:
        return "standby"
    return start


def may_fall_back(start: str, context: Any) -> bool:
    """Whether nobody asked for a certain way, and there is fork for a data set that goes no other way."""
    return start == "auto" and context is None and HAS_FORK


def _refuse(start: str) -> str:
    raise ValueError(
        f'start={start!r} needs fork, which {sys.platform} does not have; start="standby" does the same job'
    )


def warm(modules: Iterable[str], *, wait: bool) -> None:
    """Have the zygote import torch, and these, or know that it will."""
    if not HAS_FORK:
        return
    from .zygote import begin, zygote

    modules = [LOADING, *modules]
    begin(modules, to_be_awaited=wait)
    if wait:
        zygote(modules)


def is_warm() -> bool:
    """Whether there is a zygote that has torch, or is about to."""
    if not HAS_FORK:
        return False
    from .zygote import is_preloaded

    return is_preloaded(LOADING)


def warm_for(start: str, workers: int) -> None:
    """Get ready, without waiting, for a crew of this kind."""
    if start == "zygote":
        warm((), wait=False)
    elif start == "standby":
        from .standby import reserve

        reserve(workers)
