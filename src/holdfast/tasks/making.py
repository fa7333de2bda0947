"""How a pool is made of its parts."""

from __future__ import annotations

import itertools
import multiprocessing
import os
from collections.abc import Callable
from typing import Any

import torch

from holdfast._core.mixing import mix
from holdfast._core.tasks import TaskLimits
from holdfast._engine.launchers import launcher
from holdfast._system import starts
from holdfast._system.cpus import cpus
from holdfast._worker import surroundings
from holdfast._worker.job import Post
from holdfast._worker.settings import gather
from holdfast._worker.task_worker import TaskJob
from holdfast.ledger import Ledger

from .judge import TaskJudge
from .outlet import Outlet
from .turns import Turns
from .works import Works

_made = itertools.count()


def make(
    seats: int,
    start: str,
    context: Any,
    initializer: Callable[..., object] | None,
    initargs: tuple[Any, ...],
    recycle_after: int | None,
    retries: Any,
    seed: int | bool | None,
    max_shared_memory: int | None,
    ledger: Ledger,
) -> tuple[Works, Turns]:
    """The works of a pool, none of its workers started yet."""
    how = starts.resolve(start, context)
    judge = TaskJudge(retries, ledger)
    share = max_shared_memory // (seats + 1) if max_shared_memory is not None else None
    outlet = Outlet(named=how == "standby", limit=share)
    authkey = bytes(multiprocessing.current_process().authkey)
    job = TaskJob(initializer, initargs, seats, gather(), outlet.inlet(), seed is not False, authkey)
    base = _seed(seed)

    def post(seat: int) -> Post:
        return Post(seat, seats, base, share, *surroundings.gather())

    try:
        starter = launcher(how, job, post, may_fork=starts.may_fall_back(start, context))
    except BaseException:
        outlet.close()
        raise
    works = Works(TaskLimits(seats, recycle_after), starter, outlet, judge)
    return works, Turns(works)


def _seed(seed: int | bool | None) -> int:
    """Where it is not given: of torch's, which is what a program sets, and another one for each pool."""
    if seed is None or isinstance(seed, bool):
        return mix(torch.initial_seed(), next(_made))
    return seed


def checked(timeout: float | None) -> float | None:
    if timeout is not None and timeout <= 0:
        raise ValueError(f"task_timeout should be a number of seconds above 0, or None, but got {timeout!r}")
    return timeout


def check_owner(works: Works) -> None:
    if os.getpid() != works.owner:
        raise RuntimeError(f"this pool belongs to process {works.owner}, of which this one is a fork: make one here")


def default_seats() -> int:
    """As many as this process may use at once."""
    return max(1, int(cpus().allowed))
