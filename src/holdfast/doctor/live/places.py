"""What a Python stack says of a process: whose turn it is, which batch and sample, and which lines are the user's."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from typing import NamedTuple

from holdfast._system.frames import Calls, Frame, Threads

_LIBRARY = re.compile(r"<frozen|.*[/\\](lib[/\\]python3[^/\\]*|site-packages|dist-packages)[/\\]")
_OURS = re.compile(r".*[/\\]holdfast[/\\](_\w+|sampling|state|tasks|ranks|iterators\.py|loader\.py|recipe\.py)")
_MULTIPROCESSING = re.compile(r".*[/\\](multiprocessing[/\\]\w+|selectors|threading)\.py")
_FETCHERS = ("torch/utils/data/_utils/fetch.py", "holdfast/_worker/fetch.py")
_LOOP = "torch/utils/data/_utils/worker.py", "_worker_loop"
_POOLS = (("multiprocessing/pool.py", "worker"), ("concurrent/futures/process.py", "_process_worker"))
_LOOPS = (_LOOP, *_POOLS)
_OUTERMOST = (*_LOOPS, ("holdfast/_worker/process.py", "serve"))
START = "the zygote, which imports torch"
# Where the one who gave work waits for it. The first that is found counts: a pool of ours waits where a loader does.
_AWAITED = (
    (START, "holdfast/_system/zygote.py", ("_ask",)),
    ("results of its pool", "holdfast/tasks/turns.py", ("wait_for",)),
    ("a batch", "holdfast/_engine/roster.py", ("wait",)),
    ("a batch", "torch/utils/data/dataloader.py", ("_try_get_data", "_get_data")),
    ("results of its pool", "multiprocessing/pool.py", ("get", "wait", "next")),
    ("the processes that it started", "multiprocessing/spawn.py", ("join",)),  # torch's
    ("the processes that it started", "multiprocessing/process.py", ("join",)),
    ("a result", "concurrent/futures/_base.py", ("result", "result_iterator", "wait", "as_completed")),
)
_TOGETHER = "torch/distributed/distributed_c10d.py"  # every function in it is something that all ranks do together


class Position(NamedTuple):
    """Which batch, and which sample by its index in the data set; None where the stack does not tell."""

    batch: int | None = None
    sample: str | None = None


def awaited(threads: Threads) -> tuple[str, Calls]:
    """What the process waits for from its workers, and the thread that does; empty when none does."""
    for calls in threads.calls:
        for what, path, functions in _AWAITED:
            if any(frame.is_in(path, *functions) for frame in calls):
                return what, calls
    return "", ()


def together(calls: Calls) -> str:
    """The collective operation that it is in: "all_reduce"; empty when it is in none."""
    return next((frame.function for frame in reversed(calls) if frame.path.endswith(_TOGETHER)), "")


def waits_for_work(calls: Calls) -> bool:
    """Whether a worker of torch or of a pool is about to take its next piece of work, which is not there."""
    for inner, outer in pairwise(calls):
        if not _MULTIPROCESSING.match(inner.path):
            return False
        if inner.is_in("multiprocessing/queues.py", "get") and any(outer.is_in(*loop) for loop in _LOOPS):
            return True
    return False


def is_pools(calls: Calls) -> bool:
    """Whether it is a worker of a pool of ``multiprocessing`` or ``concurrent.futures``."""
    return any(frame.is_in(*pool) for frame in calls for pool in _POOLS)


def since_work_began(calls: Calls) -> Calls:
    """Without what is outside of a worker's loop: there a fork still shows what its parent was about."""
    begun = (at for at, frame in enumerate(calls) if any(frame.is_in(*loop) for loop in _OUTERMOST))
    return calls[: next(begun, len(calls)) + 1]


def position(threads: Threads) -> Position:
    batch = _number(_variables(threads.main, *_LOOP).get("idx", ""))
    fetchers = [frame.variables for frame in threads.main if frame.path.endswith(_FETCHERS)]
    samples = [found for known in fetchers for name in ("idx", "index") if (found := known.get(name))]
    return Position(batch, samples[0] if samples else None)


def seat(threads: Threads) -> tuple[int | None, int | None]:
    """Which of how many workers of torch it is."""
    known = _variables(threads.main, *_LOOP)
    return _number(known.get("worker_id", "")), _number(known.get("num_workers", ""))


def owed_by(threads: Threads) -> int | None:
    """The worker whose batch torch's iterator waits for, by its number."""
    found = (_variables(calls, "torch/utils/data/dataloader.py", "_next_data") for calls in threads.calls)
    return next((_number(known["worker_id"]) for known in found if "worker_id" in known), None)


def of_user(calls: Calls) -> Calls:
    """The calls of the user's own code; all of them where there is none."""
    return tuple(frame for frame in calls if not _is_library(frame)) or calls


def place(frame: Frame, folder: str) -> str:
    """``fetch at data.py:31``: a file below the working directory of its process by its path from there."""
    path = frame.path
    if folder and path.startswith(folder.rstrip("/") + "/"):
        path = os.path.relpath(path, folder)
    return f"{frame.function} at {path}:{frame.line}"


def _is_library(frame: Frame) -> bool:
    return bool(_LIBRARY.match(frame.path) or _OURS.match(frame.path))


def _variables(calls: Calls, path: str, function: str) -> dict[str, str]:
    return next((dict(frame.variables) for frame in calls if frame.is_in(path, function)), {})


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None
