"""What ``iter(loader)`` gives: torch's iterator base with our engine, or with our own loading in the trainer itself."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.autograd import profiler
from torch.utils.data import IterDataPipe, MapDataPipe
from torch.utils.data._utils.pin_memory import pin_memory
from torch.utils.data.dataloader import _BaseDataLoaderIter, _DatasetKind, _sharding_worker_init_fn
from torch.utils.data.graph_settings import apply_random_seed

from holdfast._core.limits import Limits
from holdfast._engine.crew import Crew
from holdfast._engine.judge import Judge
from holdfast._engine.notices import Ear
from holdfast._engine.parking import Parked, Parking
from holdfast._engine.prompts import debugged
from holdfast._engine.watch import Watch
from holdfast._monitor import bundle
from holdfast._worker import surroundings
from holdfast._worker.attributes import Attributes, Place
from holdfast._worker.collate_types import types_added_by_user
from holdfast._worker.describe import describe
from holdfast._worker.job import Job, Post
from holdfast._worker.life import is_recipe
from holdfast._worker.settings import NOT_NEEDED, gather
from holdfast._worker.sharding import Ranks
from holdfast._worker.stateful import has_state

from .audit.paths import kind_of_emptiness
from .errors import EmptyDataset, LoadedTooLate
from .policies import policy
from .state.beginning import begun
from .state.saving import state_of

if TYPE_CHECKING:
    from .loader import DataLoader


class _Unasked:
    """The loader as torch's base class is to see it: nobody asks its sampler for anything until we do."""

    _index_sampler = ()

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Iterator(_BaseDataLoaderIter):
    """What both have in common."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        loader._run.attend(loader)  # before torch draws a seed
        with loader._run.unmoved(loader):
            super().__init__(cast("DataLoader[Any]", _Unasked(loader)))
        self._in_processes = self._num_workers > 0 and loader.workers != "thread"
        self._tally, self._since = loader._tally, 0.0
        self._policy = policy(loader.on_error)
        find = functools.partial(describe, loader.dataset)
        self._sampler, self._deal = loader._index_sampler, loader._deal()  # not the loader, which may hold us
        self._judge = Judge(self._policy, loader.faults, find, auto_collation=self._auto_collation)
        # Items that are too few for a batch are dropped without a word, so nothing can be said then.
        self._must_give = loader._is_iterable and not loader.allow_empty and not loader.drop_last
        self._awaits_first = False
        self._bundle = bundle.place(loader.bundle)
        self._options = bundle.options(loader) if self._bundle else {}

    def __next__(self) -> Any:
        tally, began = self._tally, perf_counter()
        try:
            data = self._given()
            tally.batches += 1
            return data
        except Exception as error:
            if self._bundle is not None and not isinstance(error, StopIteration):
                bundle.write(self._bundle, error, self._judge.ledger, self._story(), self._options)
            raise
        finally:
            self._since = tally.clock(began, self._since)

    def _given(self) -> Any:
        if self._awaits_first:
            return self._first()
        promised = cast("int | None", self._IterableDataset_len_called)  # torch warns of streams that give more
        if promised is not None or profiler._is_profiler_enabled:
            return super().__next__()
        data: Any = self._next_data()  # without the profiler's record, which costs 10 µs a batch
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
            settings=gather() if self._in_processes else NOT_NEEDED,
            tolerant=self._policy.tolerant,
            debugged=debugged(self._policy),
            collate_types=types_added_by_user(),
            shard=self._ranks(loader.shard),
            snapshot_every=loader.snapshot_every_n_steps,
        )

    def _ranks(self, shard: str | None) -> Ranks | None:
        if shard is None:
            return None
        return Ranks(self._rank, self._world_size) if shard == "auto" else Ranks()

    def _begin_epoch(self, loader: DataLoader[Any], base: int | None) -> None:
        """``base``: the seed that torch has drawn, if it has. The loader knows from now on how far we are."""
        shared = self._shared_seed
        self._progress = begun(loader, self._judge, base, shared)
        self._epoch = self._progress.epoch.number
        self._since = self._tally.begin()
        if (saved := self._progress.epoch.shared) is not None and saved != shared:
            apply_random_seed(cast("IterDataPipe[Any]", self._dataset), torch.Generator().manual_seed(saved))
        self._awaits_first = self._must_give and not self._progress.given
        loader._run.iterator = weakref.ref(self)

    def supersede(self) -> None:
        """A state was loaded into the loader: this iterator has no part in it, and says so when it is asked."""
        self._awaits_first = False
        self._next_data = _too_late  # type: ignore[method-assign]

    def settle(self) -> None:
        """Until the state of every stream can be told."""

    def __len__(self) -> int:
        return self._deal.steps if self._deal is not None else len(self._sampler)

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

        self._work = Serial(self._job(loader), self._judge)
        self._begin_epoch(loader, int(self._base_seed))
        self._work.begin(self._progress.told(), self._progress.trail)

    def _next_data(self) -> Any:
        progress = self._progress
        try:
            if progress.over:
                raise StopIteration
            batch, index = progress.draws.next_to_load()
            if progress.trail is not None:
                batch = progress.trail.given[0]
            return self._pinned(self._work.batch(batch, index, progress.draws))
        except StopIteration:
            if not progress.over:
                progress.over = True
                self._judge.finish()
            raise


class CrewIterator(_Iterator):
    """``num_workers > 0``: a crew. Owns it; closed by the end of the epoch, ``_shutdown_workers``, or its own death."""

    _crew: Crew | None = None
    _parking: weakref.ref[Parking] | None = None

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        loader._parking.warn_of_habit()
        self._parking, self._loader = weakref.ref(loader._parking), weakref.ref(loader)
        self._attributes = Attributes(self._dataset if self._in_processes else None)
        self._seed = [0]  # of this epoch, as workers are told that are started in it
        self._staff(loader)
        self._reset(loader, first_iter=True)

    def _staff(self, loader: DataLoader[Any]) -> None:
        """Get a crew: a new one, or one that was left by an iterator before us."""
        job = self._job(loader)
        limits = Limits(
            seats=self._num_workers,
            prefetch=max(1, loader.prefetch_factor or 0),
            in_order=loader.in_order,
            bound=job.iterable,
            max_restarts=loader.max_restarts,
            recycle_after=loader.recycle_after,
        )
        watch = Watch(loader.stall_timeout, loader.max_worker_memory)
        ear = Ear(loader._notices, job, persistent=self._persistent_workers, threads=not self._in_processes)
        starter = loader._launcher(job, _posts(loader, self._seed, ear))
        if starter.forks:
            loader._notices.look_for_handles(self._dataset)
        told = loader.on_error, loader.stall_timeout, loader.max_worker_memory, loader.max_shared_memory
        terms = limits, *told, *surroundings.of(loader.workers)
        parked = None if self._persistent_workers else loader._parking.take(starter, terms)
        if parked is not None:
            self._judge = parked.judge
        self._parked = parked or Parked(
            Crew(limits, starter, self._judge, watch, ear, self._tally), self._judge, starter, job, terms
        )
        self._crew = self._parked.crew

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        shared_seed = self._shared_seed
        if not first_iter:
            loader._run.attend(loader)
            vars(self).pop("_next_data", None)  # it is neither late nor interrupted any more
            if self._crew is None or self._crew.closed:
                self._staff(loader)
        super()._reset(loader, first_iter)
        if first_iter:
            self._shared_seed = shared_seed  # torch draws another one, and does not use it
        self._begin(loader, int(self._base_seed) if first_iter else None)

    def _begin(self, loader: DataLoader[Any], base: int | None) -> None:
        assert self._crew is not None
        self._begin_epoch(loader, base)
        progress = self._progress
        self._seed[0] = progress.epoch.seed
        self._crew.begin(progress.told(), progress.draws, progress.trail, self._attributes.changes())
        if progress.trail is not None and not is_recipe(self._dataset) and has_state(self._dataset):
            self._crew.settle()  # as torchdata does: whoever asks for the state gets it, also if he drops the iterator

    def _next_data(self) -> Any:
        assert self._crew is not None
        try:
            return self._pinned(self._crew.next(self._timeout))
        except StopIteration:
            self._progress.over = True
            if not self._persistent_workers:
                self._crew.close()
            if self._parking is not None and (parking := self._parking()) is not None:
                parking.forget()
            raise
        except KeyboardInterrupt:
            if self._crew.closed:  # it came while the crew was at work, and nobody knows how far that was
                self._next_data = self._next_of_new_crew  # type: ignore[method-assign]
            raise

    def _next_of_new_crew(self) -> Any:
        """After an interrupt: other workers go on with the very batch that was due."""
        loader = self._loader()
        if loader is None or loader._run.progress is not self._progress:
            raise RuntimeError("this iterator was interrupted, and its loader has begun another one or is gone")
        loader._run.loaded = state_of(loader, None)
        loader._run.attend(loader)
        self._staff(loader)
        self._begin(loader, None)
        del self._next_data  # only now: another interrupt may come
        return self._next_data()

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

    def settle(self) -> None:
        if self._crew is not None:
            self._crew.settle()

    def supersede(self) -> None:
        super().supersede()
        if not self._persistent_workers:
            self._shutdown_workers()

    def _shutdown_workers(self) -> None:
        """End the workers, now; harmless when done before. Not called `close`: ``yield from loader`` would call that
        when it is left, and workers that persist would end."""
        self._awaits_first = False
        if self._crew is not None:
            self._crew.close()

    def __del__(self) -> None:
        parking = self._parking() if self._parking is not None else None
        if self._crew is None or self._crew.closed or self._persistent_workers or parking is None:
            self._shutdown_workers()
        else:
            parking.leave(self._parked, self._num_yielded)


def _too_late() -> Any:
    raise LoadedTooLate()


def emptiness(dataset: object) -> EmptyDataset:
    return EmptyDataset(type(dataset).__name__, kind_of_emptiness(dataset))


def _posts(loader: DataLoader[Any], seed: list[int], ear: Ear) -> Callable[[int], Post]:
    """What each worker is told of itself: the trainer's surroundings as they are when it is started."""
    seats, shared, measures = loader.num_workers, loader.max_shared_memory, loader.max_worker_memory is not None
    limit = shared // seats if shared is not None else None
    first_lives, workers = set(range(seats)), loader.workers  # not the loader, which would hold itself

    def post(seat: int) -> Post:
        is_first = seat in first_lives
        first_lives.discard(seat)
        tells = is_first and ear.wants_items, is_first and ear.wants_random and seat == 0
        return Post(seat, seats, seed[0], limit, *surroundings.of(workers), measures, *tells)

    return post

