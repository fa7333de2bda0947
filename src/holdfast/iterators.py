"""What ``iter(loader)`` gives: torch's iterator base with our engine, or with our own loading in the trainer itself."""

from __future__ import annotations

import functools
import os
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import profiler
from torch.utils.data import IterDataPipe, MapDataPipe
from torch.utils.data._utils.pin_memory import pin_memory
from torch.utils.data.dataloader import _BaseDataLoaderIter, _DatasetKind, _sharding_worker_init_fn

from holdfast._core.limits import Limits
from holdfast._core.refill import Refill
from holdfast._engine.crew import Crew
from holdfast._engine.draws import Draws
from holdfast._engine.judge import Judge
from holdfast._engine.launchers import launcher
from holdfast._engine.notices import Ear
from holdfast._engine.parking import Parked, Parking
from holdfast._engine.population import population
from holdfast._engine.watch import Watch
from holdfast._monitor import bundle
from holdfast._system import starts
from holdfast._system.interpreter import current_directory
from holdfast._worker.attributes import Attributes, Place
from holdfast._worker.collate_types import types_added_by_user
from holdfast._worker.describe import describe
from holdfast._worker.job import Job, Post
from holdfast._worker.seeds import Fenced
from holdfast._worker.settings import gather
from holdfast._worker.sharding import Ranks

from .audit.paths import kind_of_emptiness
from .errors import EmptyDataset
from .policies import policy

if TYPE_CHECKING:
    from .loader import DataLoader


class _Iterator(_BaseDataLoaderIter):
    """What both have in common."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._seed = int(self._base_seed)  # of this epoch
        self._counts = self._dataset_kind == _DatasetKind.Iterable  # torch warns of iterables longer than their len
        self._policy = policy(loader.on_error)
        find = functools.partial(describe, loader.dataset)
        self._judge = Judge(self._policy, loader.faults, find, auto_collation=self._auto_collation)
        self._loader_tally = loader._tally
        self._population = population(self._index_sampler, lists=self._auto_collation)
        # Items that are too few for a batch are dropped without a word, so nothing can be said then.
        self._must_give = self._counts and not loader.allow_empty and not loader.drop_last
        self._awaits_first = False
        self._bundle = bundle.place(loader.bundle)
        self._options = bundle.options(loader) if self._bundle else {}

    def __next__(self) -> Any:
        try:
            if self._awaits_first:
                return self._first()
            if self._counts or profiler._is_profiler_enabled:
                return super().__next__()
            data: Any = self._next_data()  # without the profiler's record, which costs 10 µs a batch
        except StopIteration:
            raise
        except Exception as error:
            if self._bundle is not None:
                bundle.write(self._bundle, error, self._judge.ledger, self._story(), self._options)
            raise
        self._num_yielded += 1
        return data

    def _story(self) -> list[str]:
        """The last events and decisions."""
        return []

    def _first(self) -> Any:
        """The first batch of a stream, or its error; or else there is none, and that is an error too."""
        self._awaits_first = False
        try:
            return super().__next__()
        except StopIteration:
            if self._judge.ledger.filter(epoch=self._epoch):
                raise  # there was something, and it was left out
            raise emptiness(self._dataset) from None

    def _next_data(self) -> Any:
        raise NotImplementedError

    def _job(self, loader: DataLoader[Any]) -> Job:
        init = loader.worker_init_fn
        if self._num_workers and isinstance(self._dataset, IterDataPipe | MapDataPipe):
            init = functools.partial(_sharding_worker_init_fn, init, self._world_size, self._rank)
        return Job(
            dataset=self._dataset,
            collate_fn=self._collate_fn,
            worker_init_fn=init,
            iterable=self._dataset_kind == _DatasetKind.Iterable,
            auto_collation=self._auto_collation,
            drop_last=self._drop_last,
            seats=self._num_workers,
            settings=gather(),
            tolerant=self._policy.tolerant,
            collate_types=types_added_by_user(),
            shard=self._ranks(loader.shard),
        )

    def _ranks(self, shard: str | None) -> Ranks | None:
        if shard is None:
            return None
        return Ranks(self._rank, self._world_size) if shard == "auto" else Ranks()

    def _begin_epoch(self) -> Draws:
        """The judge is told of the epoch; what it chooses from is known."""
        # The sampler's own method, not ours: the crew must not keep this iterator alive, whose death closes the crew.
        draws = Draws(self._sampler_iter.__next__, lists=self._auto_collation)
        refill = Refill(self._seed, self._population, draws.before, draws.after)
        self._epoch, self._loader_tally.epochs = self._loader_tally.epochs, self._loader_tally.epochs + 1
        self._judge.begin(self._epoch, refill)
        self._awaits_first = self._must_give
        return draws

    def _pinned(self, data: Any) -> Any:
        return pin_memory(data, self._pin_memory_device) if self._pin_memory else data


class SerialIterator(_Iterator):
    """``num_workers=0``: loads in the trainer, with the seeds that workers would use."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if self._timeout:
            raise ValueError(f"timeout needs num_workers > 0, but got timeout={self._timeout} with num_workers=0")
        if isinstance(self._dataset, IterDataPipe | MapDataPipe):
            torch.utils.data.graph_settings.apply_sharding(self._dataset, self._world_size, self._rank)
        from holdfast._engine.serial import Serial  # late: a loader with workers needs none

        self._random, self._work = Fenced(), Serial(self._job(loader), self._judge)
        with self._random.seed(self._seed, 0):
            self._work.begin()
        self._draws = self._begin_epoch()
        self._batch = 0

    def _next_data(self) -> Any:
        try:
            index = self._draws.next()
        except StopIteration:
            self._judge.finish()
            raise
        batch, self._batch = self._batch, self._batch + 1
        return self._pinned(self._work.batch(batch, index, self._draws, self._random.seed(self._seed, batch)))


class CrewIterator(_Iterator):
    """``num_workers > 0``: a crew of workers. Owns it; closed by the end of the epoch, ``close``, or its own death."""

    _crew: Crew | None = None
    _parking: weakref.ref[Parking] | None = None

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        loader._parking.warn_of_habit()
        job = self._job(loader)
        limits = Limits(
            seats=self._num_workers,
            prefetch=max(1, loader.prefetch_factor or 0),
            in_order=loader.in_order,
            bound=job.iterable,
            max_restarts=loader.max_restarts,
            recycle_after=loader.recycle_after,
        )
        start = (
            starts.resolve(loader.start, loader.multiprocessing_context) if loader.workers == "process" else "thread"
        )
        may_fork = starts.may_fall_back(loader.start, loader.multiprocessing_context)
        watch = Watch(loader.stall_timeout, loader.max_worker_memory)
        ear = Ear(loader._notices, job, persistent=self._persistent_workers, threads=start == "thread")
        starter = launcher(start, job, _posts(loader, self._seed, ear), may_fork=may_fork)
        if starter.forks:
            loader._notices.look_for_handles(self._dataset)
        self._attributes = Attributes(self._dataset if start != "thread" else None)
        told = loader.on_error, loader.stall_timeout, loader.max_worker_memory, loader.max_shared_memory
        terms = limits, *told, *_surroundings()
        parked = None if self._persistent_workers else loader._parking.take(starter, terms)
        if parked is not None:
            self._judge = parked.judge
        self._parked = parked or Parked(
            Crew(limits, starter, self._judge, watch, ear, loader._tally), self._judge, starter, job, terms
        )
        self._parking = weakref.ref(loader._parking)
        self._crew = self._parked.crew
        self._reset(loader, first_iter=True)

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        shared_seed = self._shared_seed
        super()._reset(loader, first_iter)
        assert self._crew is not None
        if not first_iter:
            shared_seed = self._shared_seed  # torch draws one for the first epoch as well, and does not use it
            # torch leaves a persistent worker's random state running on; ours begins every epoch anew, so an epoch is
            # the same with persistent workers and without.
            self._seed = int(torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item())
        self._crew.begin(self._seed, shared_seed, self._begin_epoch(), self._attributes.changes())

    def _next_data(self) -> Any:
        assert self._crew is not None
        try:
            return self._pinned(self._crew.next(self._timeout))
        except StopIteration:
            if not self._persistent_workers:
                self._crew.close()
            if self._parking is not None and (parking := self._parking()) is not None:
                parking.forget()
            raise

    def _story(self) -> list[str]:
        return self._crew.story.lines() if self._crew is not None else []

    def broadcast(self, place: Place, packed: bytes) -> None:
        """Have this attribute set in all workers, from their next epoch on."""
        self._attributes.set(place, packed)

    @property
    def restarts(self) -> int:
        return self._crew.restarts if self._crew is not None else 0

    @property
    def _workers(self) -> list[Any]:
        """The latest process of each seat, as torch's iterator shows them."""
        return self._crew.processes if self._crew is not None else []

    def close(self) -> None:
        """End the workers, now; harmless when done before."""
        self._awaits_first = False
        if self._crew is not None:
            self._crew.close()

    _shutdown_workers = close  # by this name frameworks and tests know it

    def __del__(self) -> None:
        parking = self._parking() if self._parking is not None else None
        if self._crew is None or self._crew.closed or self._persistent_workers or parking is None:
            self.close()
        else:
            parking.leave(self._parked, self._num_yielded)


def emptiness(dataset: object) -> EmptyDataset:
    return EmptyDataset(type(dataset).__name__, kind_of_emptiness(dataset))


def _posts(loader: DataLoader[Any], seed: int, ear: Ear) -> Callable[[int], Post]:
    """What each worker is told of itself: the trainer's surroundings as they are when it is started."""
    seats, shared, measures = loader.num_workers, loader.max_shared_memory, loader.max_worker_memory is not None
    limit = shared // seats if shared is not None else None
    first_lives = set(range(seats))

    def post(seat: int) -> Post:
        is_first = seat in first_lives
        first_lives.discard(seat)
        tells = is_first and ear.wants_items, is_first and ear.wants_random and seat == 0
        return Post(seat, seats, seed, limit, *_surroundings(), measures, *tells)

    return post


def _surroundings() -> tuple[dict[str, str], str, list[str], list[str]]:
    return dict(os.environ), current_directory(), list(sys.path), list(sys.argv)
