"""`DataLoader`: torch's, on the engine. A thin face: arguments in, an iterator out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch.utils.data
from torch.utils.data import Dataset, Sampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

from holdfast._engine.tally import Tally
from holdfast._system import starts

from .iterators import CrewIterator, SerialIterator
from .warming import warm_early

T_co = TypeVar("T_co", covariant=True)
WORKERS = ("process", "thread")


class DataLoader(torch.utils.data.DataLoader[T_co]):
    """A drop-in for ``torch.utils.data.DataLoader`` that survives the death of its workers.

    All of torch's arguments, with torch's meaning, and:

    Args:
        start: how worker processes are started: ``"auto"`` (forked from a clean, warm process; on Windows spawned
        ahead of
            need), ``"zygote"``, ``"standby"``, ``"fork"``, ``"spawn"`` or ``"forkserver"``.
            ``multiprocessing_context`` is honoured when ``start`` is ``"auto"``.
        workers: ``"process"``, or ``"thread"`` for code that releases the GIL. Threads share the data set; they
            learn who they are from ``holdfast.get_worker_info()`` (torch's function says None there), whose ``rng``
            has the generators that are seeded for each batch.
        max_restarts: how many workers that died may be replaced. None: any number, as long as batches keep coming.
        max_shared_memory: bytes of shared memory that all workers together may use for batches. None: what the machine
            or container has.
    """

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        start: str = "auto",
        workers: str = "process",
        max_restarts: int | None = None,
        max_shared_memory: int | None = None,
    ) -> None:
        super().__init__(
            dataset,
            batch_size,
            shuffle,
            sampler,
            batch_sampler,
            num_workers,
            collate_fn,
            pin_memory,
            drop_last,
            timeout,
            worker_init_fn,
            multiprocessing_context,
            generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            pin_memory_device=pin_memory_device,
            in_order=in_order,
        )
        _check("workers", workers, workers in WORKERS, f"one of {WORKERS}")
        _check("max_restarts", max_restarts, max_restarts is None or max_restarts >= 0, "None or not negative")
        positive = max_shared_memory is None or max_shared_memory > 0
        _check("max_shared_memory", max_shared_memory, positive, "None or a number of bytes")
        self.start, self.workers = start, workers
        self.max_restarts, self.max_shared_memory = max_restarts, max_shared_memory
        self._tally = Tally()
        launcher = starts.resolve(start, self.multiprocessing_context)
        if num_workers and workers == "process":
            warm_early(launcher, num_workers)

    @property
    def restarts(self) -> int:
        """Workers that died and were replaced, in all epochs so far."""
        return self._tally.restarts

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if not self.num_workers:
            return SerialIterator(self)
        self.check_worker_number_rationality()
        return CrewIterator(self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_iterator" and value is None:
            running = self.__dict__.get("_iterator")
            if isinstance(running, CrewIterator):
                running.close()  # frameworks end persistent workers this way, while they still hold the iterator
        super().__setattr__(name, value)


def _check(name: str, value: object, valid: bool, expected: str) -> None:
    if not valid:
        raise ValueError(f"{name} should be {expected}, but got {name}={value!r}")
