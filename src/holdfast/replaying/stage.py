"""The surroundings that a sample had: those of a worker, with its seeds, and what was fetched before it."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy
import torch
from torch.utils.data._utils import worker as torch_worker

from holdfast._worker.describe import describe
from holdfast._worker.life import unwrap
from holdfast._worker.seeding import seed_all
from holdfast._worker.seeds import Seeder

from .portrait import Leaf, digest, portrait
from .wanted import Wanted

Get = Callable[[Any], Any]


@dataclass
class Seen:
    """What came of it: what the sample is, or the error that it raised. Plain data."""

    where: str
    seconds: float = 0.0
    leaves: list[Leaf] = field(default_factory=list)
    digest: str = ""
    error: str = ""  # the last line of a traceback
    traceback: str = ""  # from the user's code on
    culprit: Any = None  # the index that raised, when it was another one of the batch


@dataclass
class Stage:
    """One sample of a data set. As a data set of one, it can be loaded by a worker of ours, whose death is explained.

    ``seats``: how many workers the loader has; 0: it loads in the trainer.
    """

    dataset: Any
    wanted: Wanted
    worker_init_fn: Callable[[int], object] | None = None
    seats: int = 0
    auto_collation: bool = False

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: int) -> Seen:
        return self.seen()

    def seen(self) -> Seen:
        """With the traceback of an error as text, as it may have to travel."""
        seen = Seen(describe(self.dataset, self.wanted.index))
        try:
            get = self.set_up(seen)
            began = time.perf_counter()
            sample = get(self.wanted.index)
            seen.seconds, seen.culprit = time.perf_counter() - began, None
        except Exception as error:
            seen.error = traceback.format_exception_only(error)[-1].strip()
            seen.traceback = "".join(traceback.format_exception(type(error), error, from_users_code(error)))
            return seen
        seen.leaves, seen.digest = portrait(sample), digest(sample)
        return seen

    def set_up(self, seen: Seen | None = None) -> Get:
        """What gives the sample; all that came before it has happened."""
        seed = self._as_worker()
        dataset, wanted = unwrap(self.dataset), self.wanted
        seed()
        whole = getattr(dataset, "__getitems__", None) if self.auto_collation else None
        if whole is not None and wanted.batch:
            return lambda index: whole(list(wanted.batch))[wanted.batch.index(index)]
        get = (lambda index: whole([index])[0]) if whole is not None else dataset.__getitem__
        for index in wanted.before or ():
            if seen is not None:
                seen.culprit = index
            get(index)
        if seen is not None:
            seen.culprit = None
        return get

    def _as_worker(self) -> Callable[[], None]:
        """As a worker begins an epoch; how it sets its random numbers for the batch."""
        wanted, moment = self.wanted, self.wanted.moment
        if moment is None or not self.seats:
            if self.seats and self.worker_init_fn is not None:
                self._introduce(wanted.seed)
                self.worker_init_fn(wanted.worker)
            return lambda: seed_all(wanted.seed)
        seat, seed = wanted.worker, moment.seed
        random.seed(seed + seat)
        torch.default_generator.manual_seed(seed + seat)
        numpy.random.seed(torch_worker._generate_state(seed, seat))
        self._introduce(seed + seat)
        if self.worker_init_fn is not None:
            self.worker_init_fn(seat)
        seeder = Seeder(seed + seat)
        seeder.seed(seed, seat)
        return lambda: seeder.seed(seed, moment.number)

    def _introduce(self, seed: int) -> None:
        torch_worker._worker_info = torch_worker.WorkerInfo(
            id=self.wanted.worker, num_workers=self.seats, seed=seed, dataset=self.dataset
        )


def from_users_code(error: BaseException) -> TracebackType | None:
    """The calls that led to it, without ours in front."""
    call = error.__traceback__
    while call is not None and call.tb_next is not None and _is_ours(call):
        call = call.tb_next
    return call


def _is_ours(call: TracebackType) -> bool:
    return bool(call.tb_frame.f_globals.get("__name__", "").startswith("holdfast."))
