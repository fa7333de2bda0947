"""What a loader asks of the machine it runs on."""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass, replace
from typing import Any

from holdfast.targets.target import Target

_PREFETCH = 2  # batches per worker, where nobody says


@dataclass(frozen=True)
class Needs:
    """``workers`` is None for a data set without a loader: nobody has said how many."""

    workers: int | None = None
    prefetch: int = _PREFETCH
    batch_bytes: int | None = None  # None: no batch has been seen
    batch_tensors: int = 2
    stock: bool = True  # torch's own loader, or no loader: what it has no answer to is worth a word
    start: str = "fork"  # how workers come to be: fork, spawn, forkserver; ours also zygote, standby, thread
    falls_back: bool = False  # to fork, when the data set goes no other way

    @property
    def forks(self) -> bool:
        """Whether workers are forks of this process."""
        return self.start == "fork"

    @property
    def batches_in_flight(self) -> int:
        """On their way to the trainer, with the one it works on and the one before, which is still being freed."""
        return self.prefetch * (self.workers or 0) + 2

    def with_batch(self, size: int, tensors: int) -> Needs:
        """The same, when a batch has been seen."""
        return replace(self, batch_bytes=size, batch_tensors=tensors)


def needs_of(target: Target) -> Needs:
    loader = target.loader
    if loader is None:
        return Needs(start=start_method())
    prefetch, stock = loader.prefetch_factor or _PREFETCH, not hasattr(loader, "start")
    context = loader.multiprocessing_context
    if stock:
        return Needs(loader.num_workers, prefetch, start=start_method(context))
    from holdfast._system import starts

    start = starts.resolve(loader.start, context) if loader.workers == "process" else "thread"
    falls_back = starts.may_fall_back(loader.start, context)
    return Needs(loader.num_workers, prefetch, stock=False, start=start, falls_back=falls_back)


def start_method(context: Any = None) -> str:
    """Of ``multiprocessing``, without settling it: ``get_start_method()`` would."""
    chosen = (context or multiprocessing).get_start_method(allow_none=True)
    return chosen or multiprocessing.get_all_start_methods()[0]  # the first is the default
