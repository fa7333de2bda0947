"""`DataLoader`: torch's, on the engine. A thin face: arguments in, an iterator out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torch.utils.data
from torch.utils.data import BatchSampler, Dataset, IterableDataset, Sampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

import holdfast._worker.collate_types  # noqa: F401  # now: it remembers what torch can collate by itself
from holdfast._engine.tally import Tally
from holdfast._system import collector, starts
from holdfast._worker.life import is_recipe
from holdfast._worker.sharding import SHARDS

from .fault import Fault
from .ledger import Ledger
from .policies import Policy, policy
from .sampling.dealing import Deal
from .sampling.distributed import DistributedSampler
from .warming import warm_early

if TYPE_CHECKING:
    from holdfast._engine.launchers import Launcher, Posts
    from holdfast._worker.job import Job

    from .tasks.pool import Pool

T_co = TypeVar("T_co", covariant=True)
WORKERS = ("process", "thread")
OF_A_POOL = {  # what is said of workers when they are started, and so not by a loader that has a pool
    "workers": "process",
    "start": "auto",
    "multiprocessing_context": None,
    "max_shared_memory": None,
    "recycle_after": None,
    "max_worker_memory": None,
}


class DataLoader(torch.utils.data.DataLoader[T_co]):
    """A drop-in for ``torch.utils.data.DataLoader`` that survives the death of its workers.

    All of torch's arguments, with torch's meaning, and:

    Args:
        start: how worker processes are started: ``"auto"`` (forked from a clean, warm process; on Windows spawned ahead
            of need), ``"zygote"``, ``"standby"``, ``"fork"``, ``"spawn"`` or ``"forkserver"``.
            ``multiprocessing_context`` is honoured when ``start`` is ``"auto"``.
        workers: ``"process"``, or ``"thread"`` for code that releases the GIL. Threads share the data set; they
            learn who they are from ``holdfast.get_worker_info()`` (torch's function says None there), whose ``rng``
            has the generators that are seeded for each batch.
        max_restarts: how many workers that died may be replaced. None: any number, as long as batches keep coming.
        max_shared_memory: bytes of shared memory that all workers together may use for batches. None: what the machine
            or container has.
        on_error: what to do about a sample that fails: ``"raise"``, ``"skip"``, ``"replace"``, ``"debug"``, a policy
            such as ``Retry(3, on=OSError) | Skip(limit=0.01)``, or a function of the fault. What was done is in
            ``faults``.
        stall_timeout: seconds without progress of a sample after which its worker counts as stalled: reported, and
            then treated as ``on_error`` says. None: reported after 60, and nothing more. 0: never.
        recycle_after: batches after which a worker is replaced by a new one, against code that leaks. Workers of an
            iterable data set are replaced between epochs only.
        max_worker_memory: bytes of its own memory above which a worker is replaced, at the edge of a batch.
        fault_log: a file that gets one line of JSON for each fault as it happens.
        bundle: a folder that gets everything known when the run ends by a fault; or the variable HOLDFAST_BUNDLE.
        shard: how a stream that does not divide itself is divided: ``"auto"``, each worker of each rank takes every
            n-th item; ``"worker"``, the same without ranks. Each still goes through the whole stream. None: not at all.
        allow_empty: whether a data set without samples is an epoch of no batches, as in torch, and not an error.
        pool: a `Pool` whose processes load the batches, which it may do for several loaders at once and between other
            tasks. ``num_workers`` is then how many batches it works on at a time for this one: by default as many as it
            has processes. How they are started, replaced and limited is the pool's affair.
        snapshot_every_n_steps: of how many batches of a worker one takes along the state that an iterable data set
            keeps of itself; what lies between is gone through again. As in torchdata.
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
        shard: str | None = None,
        allow_empty: bool = False,
        snapshot_every_n_steps: int = 1,
        pool: Pool | None = None,
    ) -> None:
        if is_recipe(dataset):
            from .recipe import look_into

            look_into(dataset)  # a recipe: is it one for an iterable data set?
        if pool is not None:
            seats = _size_of(pool)
            num_workers = num_workers or seats
        self.shard, self.allow_empty, self.pool = shard, allow_empty, pool
        self._takes_all = sampler is None and batch_sampler is None and not isinstance(dataset, IterableDataset)
        if allow_empty and shuffle and self._takes_all and _is_empty(dataset):
            shuffle = False  # torch has no sampler that shuffles nothing, and refuses to make one
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
        self.start, self.workers = start, workers
        self.max_restarts, self.max_shared_memory = max_restarts, max_shared_memory
        self.on_error, self.stall_timeout = on_error, stall_timeout
        self.recycle_after, self.max_worker_memory = recycle_after, max_worker_memory
        self.fault_log, self.bundle = fault_log, bundle
        self.snapshot_every_n_steps = snapshot_every_n_steps
        self._check()
        self._tally, self._faults = Tally(), Ledger(file=fault_log)
        launcher = starts.resolve(start, self.multiprocessing_context)
        if num_workers and workers == "process" and pool is None:
            warm_early(launcher, num_workers)
        # Only now: while the zygote imports torch, we have the time to import the engine.
        with collector.at_rest():
            from holdfast._engine.notices import Notices
            from holdfast._engine.parking import Parking
            from holdfast.state.run import Run

        self._notices, self._parking, self._run = Notices(), Parking(), Run()

    def _check(self) -> None:
        """Of what is not torch's: an error that says what is valid."""
        _expect(self, "workers", f"one of {WORKERS}", self.workers in WORKERS)
        for name in ("max_restarts", "stall_timeout", "snapshot_every_n_steps"):
            value = getattr(self, name)
            _expect(self, name, "None or not negative", value is None or value >= 0)
        for name in ("max_shared_memory", "recycle_after", "max_worker_memory"):
            value = getattr(self, name)
            _expect(self, name, "None or a positive number", value is None or value > 0)
        _expect(self, "shard", f"one of {SHARDS}", self.shard in SHARDS)
        if self.shard is not None and not isinstance(self.dataset, IterableDataset):
            raise ValueError(f"shard={self.shard!r} is for iterable data sets: the sampler divides a map-style one")
        if self.pool is not None:
            self._check_pool()
        policy(self.on_error)
        self._deal()

    def _check_pool(self) -> None:
        if isinstance(self.dataset, IterableDataset):
            raise ValueError(
                "pool= is for map-style data sets, any batch of which any process can load: a stream needs workers of "
                "its own, num_workers= without pool="
            )
        for name, usual in OF_A_POOL.items():
            if getattr(self, name) != usual:
                raise ValueError(f"{name}={getattr(self, name)!r} is for workers of its own, and with pool= the pool's")

    @property
    def restarts(self) -> int:
        """Workers that died and were replaced, in all epochs so far."""
        return self._tally.restarts

    @property
    def faults(self) -> Ledger:
        """All that went wrong, in all epochs so far, and what was done about it."""
        return self._faults

    def broadcast(self, **values: Any) -> None:
        """Set these attributes on the data set, here and in all workers: from the next ``iter(loader)`` on.

        An epoch that has begun goes on with what it began with, also in a worker that is replaced meanwhile. Needed for
        persistent workers only, and there not for plain public values: ``dataset.epoch = 3`` reaches them by itself.
        Of a ``Subset`` and its like, the attribute is set on the data set inside that has it.
        """
        from holdfast._worker import attributes

        found = {name: attributes.find(self.dataset, name) for name in values}
        packed = {name: attributes.pack(value) for name, value in values.items()}
        for name, (path, part) in found.items():
            setattr(part, name, values[name])
            running: Any = self._iterator
            if running is not None:
                running.broadcast((path, name), packed[name])

    def state_dict(self, at: int | None = None) -> dict[str, Any]:
        """Where this loader is: behind the last batch that it gave, wherever its workers are.

        Plain types only, small, and the same on every rank. Load it into a loader of the same data, with any number of
        workers, and it goes on with the very next batch. ``at``: how many batches of this epoch are to count as given,
        up to a few less than were; for those who fetch ahead of the training step.
        """
        from .state.saving import state_of

        running: Any = self._run.iterator()
        if running is not None and self._run.loaded is None:
            running.settle()
        return state_of(self, at)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there with the next ``iter(loader)``. An iterator that was made before raises when it is used."""
        from .state.loading import checked

        self._run.load(self, checked(self, state) if state else None)
        running: Any = self._run.iterator()
        if running is not None:
            running.supersede()

    def __len__(self) -> int:
        deal = self._deal()
        return deal.steps if deal is not None else super().__len__()

    def _deal(self) -> Deal | None:
        """Among ranks, if it is ours that deals; where that cannot be done it is an error."""
        sampler = self.batch_sampler.sampler if type(self.batch_sampler) is BatchSampler else self.sampler
        if not isinstance(sampler, DistributedSampler) or (self.batch_size is None and self.batch_sampler is not None):
            return None
        return sampler.deal(self.batch_size or 1, drop_last=self.drop_last)

    @property
    def _is_iterable(self) -> bool:
        return isinstance(self.dataset, IterableDataset)

    def _get_iterator(self) -> _BaseDataLoaderIter:
        with collector.at_rest():
            from .iterators import CrewIterator, SerialIterator, emptiness

        if not self.allow_empty and self._takes_all and _is_empty(self.dataset):
            raise emptiness(self.dataset)
        if not self.num_workers:
            return SerialIterator(self)
        if self.pool is None:
            self.check_worker_number_rationality()
        return CrewIterator(self)

    def _launcher(self, job: Job, posts: Posts) -> Launcher:
        """Of the workers of one crew."""
        if self.pool is not None:
            from .tasks.hired import Hired

            return Hired(self.pool, job, posts)
        from holdfast._engine.launchers import launcher

        context = self.multiprocessing_context
        start = starts.resolve(self.start, context) if self.workers == "process" else "thread"
        return launcher(start, job, posts, may_fork=starts.may_fall_back(self.start, context))

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_iterator" and value is None:
            running = self.__dict__.get("_iterator")
            if running is not None:
                running._shutdown_workers()  # frameworks say so, while they still hold the iterator
        super().__setattr__(name, value)


def _size_of(pool: Any) -> int:
    from .tasks.pool import Pool

    if not isinstance(pool, Pool):
        raise TypeError(f"pool should be a holdfast.Pool, but got pool={pool!r}")
    return pool._seats


def _is_empty(dataset: Any) -> bool:
    try:
        return len(dataset) == 0
    except (TypeError, NotImplementedError):
        return False  # whoever needs its length will say so


def _expect(loader: object, name: str, expected: str, valid: bool) -> None:
    if not valid:
        raise ValueError(f"{name} should be {expected}, but got {name}={getattr(loader, name)!r}")
