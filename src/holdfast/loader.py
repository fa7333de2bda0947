"""`DataLoader`: torch's, on the engine. A thin face: arguments in, an iterator out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch.utils.data
from torch.utils.data import Dataset, Sampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

from holdfast._engine.tally import Tally
from holdfast._system import starts

from .fault import Fault
from .iterators import CrewIterator, SerialIterator
from .ledger import Ledger
from .policies import Policy, policy
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
        on_error: what to do about a sample that fails: ``"raise"``, ``"skip"``, ``"replace"``, a policy such as
            ``Retry(3, on=OSError) | Skip(limit=0.01)``, or a function of the fault. What was done is in ``faults``.
        stall_timeout: seconds without progress of a sample after which its worker counts as stalled: reported, and
            then treated as ``on_error`` says. None: reported after 60, and nothing more. 0: never.
        recycle_after: batches after which a worker is replaced by a new one, against code that leaks. Workers of an
            iterable data set are replaced between epochs only.
        max_worker_memory: bytes of its own memory above which a worker is replaced, at the edge of a batch.
        fault_log: a file that gets one line of JSON for each fault as it happens.
        bundle: a folder that gets everything known when the run ends by a fault; or the variable HOLDFAST_BUNDLE.
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
        on_error: Policy | str | Callable[[Fault], Any] = "raise",
        stall_timeout: float | None = None,
        recycle_after: int | None = None,
        max_worker_memory: int | None = None,
        fault_log: str | os.PathLike[str] | None = None,
        bundle: str | os.PathLike[str] | None = None,
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
        for name, value in {
            "max_shared_memory": max_shared_memory,
            "recycle_after": recycle_after,
            "max_worker_memory": max_worker_memory,
        }.items():
            _check(name, value, value is None or value > 0, "None or a positive number")
        _check("stall_timeout", stall_timeout, stall_timeout is None or stall_timeout >= 0, "None or not negative")
        policy(on_error)  # says what is wrong with it
        self.start, self.workers = start, workers
        self.max_restarts, self.max_shared_memory = max_restarts, max_shared_memory
        self.on_error, self.stall_timeout = on_error, stall_timeout
        self.recycle_after, self.max_worker_memory = recycle_after, max_worker_memory
        self.fault_log, self.bundle = fault_log, bundle
        self._tally = Tally()
        self._faults = Ledger(file=fault_log)
        launcher = starts.resolve(start, self.multiprocessing_context)
        if num_workers and workers == "process":
            warm_early(launcher, num_workers)

    @property
    def restarts(self) -> int:
        """Workers that died and were replaced, in all epochs so far."""
        return self._tally.restarts

    @property
    def faults(self) -> Ledger:
        """All that went wrong, in all epochs so far, and what was done about it."""
        return self._faults

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
