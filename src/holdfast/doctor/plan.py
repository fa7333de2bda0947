"""How the target is loaded while it is examined: as its own loader would, with any number of workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from torch.utils.data import IterableDataset

from holdfast._worker.life import unwrap
from holdfast.loader import DataLoader
from holdfast.policies import Policy
from holdfast.targets.target import Target

from .needs import start_method

SEED = 6  # of all probes
MOST = 1024  # samples that are compared
_BARE = 8  # samples in a batch, where the user named a data set and no loader


@dataclass(frozen=True)
class Plan:
    """``batches`` are lists of indices, or of one index each where the loader makes no batches; of a stream empty."""

    dataset: Any
    loader: Any
    start: str
    batch_size: int
    batches: tuple[list[Any], ...] = ()
    runs_init: bool = True

    @property
    def may_fork(self) -> bool:
        """Whether workers are forks; where ``start`` is "auto", those of a data set that cannot be shipped are."""
        return self.start in ("fork", "auto")

    @property
    def has_init(self) -> bool:
        return getattr(self.loader, "worker_init_fn", None) is not None

    @property
    def iterable(self) -> bool:
        return isinstance(self.dataset, IterableDataset)

    @property
    def makes_batches(self) -> bool:
        return self.loader is None or bool(self.loader._auto_collation)

    @property
    def collate_fn(self) -> Any:
        return _as_it_is if self.loader is None else self.loader.collate_fn

    @property
    def by_threads(self) -> bool:
        return getattr(self.loader, "workers", "process") == "thread"

    def without(self, samples: set[str]) -> Plan:
        """Less those that are known to be bad, by their repr."""
        left = ([index for index in batch if repr(index) not in samples] for batch in self.batches)
        return replace(self, batches=tuple(batch for batch in left if batch))

    def ordered(self, batches: list[list[Any]]) -> Plan:
        """With these, which may be longer than they should: a batch sampler makes what it likes."""
        return replace(self, batches=tuple(batches), batch_size=max([self.batch_size, *map(len, batches)]))

    def cut(self, size: int, most: int) -> Plan:
        """Batches of at most ``size``, and ``most`` of them."""
        size = max(1, min(size, self.batch_size))
        pieces = [batch[at : at + size] for batch in self.batches for at in range(0, len(batch), size)]
        return replace(self, batch_size=size, batches=tuple(pieces[:most]))

    def indices(self) -> list[Any]:
        return [index for batch in self.batches for index in batch]

    def made(self, workers: int, collate_fn: Any, batches: Any, patience: float, on_error: Policy) -> DataLoader[Any]:
        """A loader of ours; ``batches`` may be more than those of the plan."""
        own = self.loader
        options: dict[str, Any] = {"collate_fn": collate_fn, "num_workers": workers, "on_error": on_error}
        if workers:
            options |= {"start": self.start, "stall_timeout": patience}
            options |= {"workers": "thread"} if self.by_threads else {}
            options |= {"prefetch_factor": getattr(own, "prefetch_factor", None)}
            options |= {"worker_init_fn": own.worker_init_fn} if self.has_init and self.runs_init else {}
        if self.iterable:
            options |= {"batch_size": self.batch_size if self.makes_batches else None}
            options |= {"shard": getattr(own, "shard", None), "allow_empty": True}
            options |= {"persistent_workers": bool(workers)}  # a short stream is measured for several epochs
        elif self.makes_batches:
            options |= {"batch_sampler": batches}
        else:
            options |= {"batch_size": None, "sampler": Flat(batches)}
        return DataLoader(self.dataset, **options)


@dataclass(frozen=True)
class Flat:
    """Batches of one index each, as a sampler of indices."""

    batches: Any

    def __iter__(self) -> Iterator[Any]:
        return (index for batch in self.batches for index in batch)


@dataclass(frozen=True)
class Repeated:
    """The batches of a plan over and over: so that every step loads the same, for as long as it is measured."""

    batches: Sequence[list[Any]]

    def __iter__(self) -> Iterator[list[Any]]:
        while True:
            yield from self.batches


def plan_of(target: Target) -> Plan:
    loader = target.loader
    size = _BARE if loader is None else loader.batch_size or 1
    return Plan(target.dataset, loader, _start(loader), size)


def _start(loader: Any) -> str:
    """As this loader's workers are started, or would be: stock torch's are forks on Linux before Python 3.14."""
    if isinstance(loader, DataLoader):
        from holdfast._system import starts

        start, context = loader.start, loader.multiprocessing_context
        return start if starts.may_fall_back(start, context) else starts.resolve(start, context)
    return start_method(getattr(loader, "multiprocessing_context", None))


def drawn(plan: Plan) -> tuple[list[list[Any]], bool]:
    """The first batches, in the order of the loader's own sampler, and whether that is all of them.

    Runs the user's sampler. Of a data set without a loader: samples from all over it.
    """
    if plan.loader is None:
        count = len(unwrap(plan.dataset))
        spread = list(range(0, count, max(1, count // MOST)))[:MOST]
        return [spread[at : at + _BARE] for at in range(0, len(spread), _BARE)], len(spread) == count
    order, found, samples = iter(plan.loader._index_sampler), [], 0
    for index in islice(order, MOST):
        found.append(list(index) if plan.makes_batches else [index])
        samples += len(found[-1])
        if samples >= MOST:
            return found, False
    return found, len(found) < MOST


def _as_it_is(samples: Any) -> Any:
    """Samples of a data set without a loader: nobody knows what becomes of them."""
    return samples
