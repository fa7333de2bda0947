"""``holdfast.spawn``: torch.multiprocessing.spawn, in which a rank that did not return is a failure."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import torch

from holdfast._system.interpreter import current_directory
from holdfast._worker.job import Post

from .context import Context
from .launch import Outlets, launch
from .output import goes_to_terminal
from .process import Errand, Habits
from .rendezvous import Rendezvous
from .starters import starter


@overload
def spawn(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: Literal[True] = True,
    daemon: bool = False,
    start_method: str = "spawn",
    *,
    distributed: bool = False,
    prefix: bool = False,
    grace_period: float | None = None,
) -> list[Any]: ...
@overload
def spawn(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    *,
    join: Literal[False],
    daemon: bool = False,
    start_method: str = "spawn",
    distributed: bool = False,
    prefix: bool = False,
    grace_period: float | None = None,
) -> Context: ...
def spawn(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
    *,
    distributed: bool = False,
    prefix: bool = False,
    grace_period: float | None = None,
) -> list[Any] | Context:
    """Run ``fn(rank, *args)`` in ``nprocs`` processes; what they returned, by rank.

    When one raises, is killed, or leaves by any other way than returning (``sys.exit(0)`` and Ctrl-C are no success),
    the others are ended, and the error of the one that failed first is raised: `RankRaised` from the exception itself,
    or `RankExited`. Both are also torch's ``ProcessRaisedException`` and ``ProcessExitedException``. No rank outlives
    this process.

    Args:
        fn: Any function; those of a script, lambdas and closures are passed on by value.
        args: Tensors among them are copied, once for all ranks; those in shared memory stay shared.
        join: False gives a `Context` with ``join(timeout)``, ``pids()``, ``processes`` and ``results``.
        daemon: At the end of the program ranks that nobody has joined are ended; else it waits for them.
        start_method: "spawn", "fork", "forkserver", or "zygote" (what "forkserver" is here), which starts in 30 ms.
        distributed: Set ``RANK``, ``WORLD_SIZE`` and the others that ``torch.distributed.init_process_group`` reads,
            with a free port.
        prefix: Show what ranks print line by line behind ``[rank]``. It passes through this process: without ``join``
            in the meantime, a rank that has printed 256 KB waits.
        grace_period: Seconds that the others have to end by themselves when one has failed.
    """
    if nprocs < 1:
        raise ValueError(f"nprocs should be at least 1, but got nprocs={nprocs!r}")
    name = getattr(fn, "__name__", type(fn).__name__)
    errand = Errand(fn, tuple(args), Habits.of_this_process(torch.get_num_threads(), prefix))
    outlets = Outlets(prefix, prefix or (join and not goes_to_terminal("stderr")))
    context = Context(name, daemon)
    try:
        _start(context, errand, nprocs, start_method, outlets, distributed)
    except BaseException:
        context.end()
        raise
    if not join:
        return context
    context.join(grace_period=grace_period)
    return context.results


def _start(
    context: Context, errand: Errand, ranks: int, start_method: str, outlets: Outlets, distributed: bool
) -> None:
    starting = starter(start_method, errand, ranks)
    context.at_close(starting.close)
    rendezvous = Rendezvous() if distributed else None
    if rendezvous is not None:
        context.at_close(rendezvous.close)
    for rank in range(ranks):
        environ = {**os.environ, **(rendezvous.environ(rank, ranks) if rendezvous is not None else {})}
        post = Post(rank, ranks, 0, None, environ, current_directory(), list(sys.path), list(sys.argv))
        context.add(launch(starting, post, outlets))
