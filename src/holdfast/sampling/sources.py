"""Where the indices of batches come from, beginning with any batch of the epoch.

An order that is known beforehand is entered anywhere at once. A sampler that keeps a state takes it up. Any other one
is asked again for all that it gave, and nothing of that is fetched.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy
import torch
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler

from holdfast._core.mixing import mix
from holdfast._core.refill import NEIGHBOURS
from holdfast._transport.faults import unpack_error
from holdfast._transport.messages import Unsaved
from holdfast._worker.seeds import Enclosed
from holdfast._worker.stateful import States, resumed
from holdfast.errors import StateMismatch

from . import generators
from .dealing import Deal
from .distributed import DistributedSampler
from .springs import Origin

_LISTED = 4096  # indices
_SAMPLER = 0x5A3B1E0D  # the sequence of random numbers that a sampler has in an epoch


class Shape(NamedTuple):
    """What is made of a sampler's indices: batches of this size, or single ones (None); or it gives batches itself."""

    sampler: Any
    batch_size: int | None
    drop_last: bool


class Kept(NamedTuple):
    """Of a sampler behind a batch: its state and its iterator's, and whether it has ended with that batch."""

    state: tuple[Any, Any] | Unsaved | None
    over: bool


class Facts(NamedTuple):
    """Of an epoch, as far as a source has to know."""

    seed: int
    epoch: int
    order: Origin  # of random orders
    start: int  # the batch to begin with


class Source(Protocol):
    stride: int
    shift: int  # batch b has the random numbers of b * stride + shift

    @property
    def marks(self) -> Mapping[int, Any]:
        """Of some batches before the first one: what is kept of the place behind them."""

    def before(self) -> Sequence[Any]:
        """Some batches before the first one, if they are known."""

    def __next__(self) -> Any: ...

    @property
    def mark(self) -> Callable[[], Any] | None:
        """Says what is to be kept of the place behind the latest batch that it gave; None: nothing, ever."""

    def saved(self, batch: int, mark: Any) -> dict[str, Any]:
        """What to save, to go on with this batch."""


def shape(index_sampler: Any) -> Shape:
    if type(index_sampler) is BatchSampler:
        return Shape(index_sampler.sampler, index_sampler.batch_size, index_sampler.drop_last)
    return Shape(index_sampler, None, False)


def kind(sampler: Any) -> str:
    """What a saved state calls it. Only what is exactly torch's, or ours, is known to do what torch's does."""
    if type(sampler) is SequentialSampler:
        return "sequential"
    if type(sampler) is RandomSampler and not sampler.replacement and sampler.num_samples <= len(sampler.data_source):
        return "random"
    return "distributed" if isinstance(sampler, DistributedSampler) else "other"


def unasked(index_sampler: Any) -> dict[str, Any]:
    """What is saved of a sampler that has given nothing yet. All keys are there: checkpoints may be read in place."""
    sampler = shape(index_sampler).sampler
    match kind(sampler):
        case "distributed":
            return _dealt(sampler, 0, 0, sampler.epoch)
        case "other":
            return _walked(sampler, **_at_rest(sampler))
        case name:
            return {"kind": name, "of": len(sampler), "samples": 0}


def _dealt(sampler: DistributedSampler, samples: int, batches: int, epoch: int) -> dict[str, Any]:
    told = {"seed": sampler.seed, "epoch": epoch, "shuffle": sampler.shuffle}
    return {"kind": "distributed", "samples": samples, "batches": batches, **told}


def _at_rest(sampler: Any) -> dict[str, Any]:
    """Between epochs: what it keeps for the next one."""
    known = {}
    own = getattr(sampler, "generator", None)
    if type(own) is torch.Generator and type(sampler) is not RandomSampler:
        known["generator"] = generators.pack(own)
    state = States(sampler, None).take()
    return known if state is None or isinstance(state, Unsaved) else known | {"state": list(state)}


def _walked(sampler: Any, **known: Any) -> dict[str, Any]:
    nothing = {"generator": None, "epoch": None, "state": None, "again": 0, "over": False}
    return {"kind": "other", "of": type(sampler).__name__, **nothing, **known}


def opened(index_sampler: Any, facts: Facts, saved: dict[str, Any]) -> Source:
    """``saved``: what a source of the same kind has saved for this batch; empty at the beginning of an epoch."""
    of = shape(index_sampler)
    match kind(of.sampler):
        case "sequential":
            return Slices(len(of.sampler), lambda: range(len(of.sampler)), of, facts, saved)
        case "random":
            return Slices(of.sampler.num_samples, lambda: _permuted(of.sampler, facts.order), of, facts, saved)
        case "distributed":
            return Dealt(of, facts, saved)
        case _:
            return Walk(of, facts, saved)


def _permuted(sampler: RandomSampler, order: Origin) -> torch.Tensor:
    count = len(sampler.data_source)
    return torch.randperm(count, generator=order.generator(), device="cpu")[: sampler.num_samples]


class Slices:
    """An order that is known as a whole. It is made when the first batch is asked for, while workers are starting."""

    stride, shift, mark = 1, 0, None
    marks: Mapping[int, Any] = MappingProxyType({})

    def __init__(
        self,
        length: int,
        make: Callable[[], Sequence[int] | torch.Tensor],
        of: Shape,
        facts: Facts,
        saved: dict[str, Any],
    ) -> None:
        self._kind, self._length, self._make = kind(of.sampler), length, make
        self._order: Sequence[int] | torch.Tensor | None = None
        self._listed: list[int] = []
        self._listed_from = self._listed_to = 0
        self._size, self._single, self._drops = of.batch_size or 1, of.batch_size is None, of.drop_last
        self._start, self._begun = facts.start, saved.get("samples", 0)
        self._at = self._begun

    def __next__(self) -> Any:
        at, end = self._at, self._at + self._size
        if at >= self._length or (self._drops and end > self._length):
            raise StopIteration
        self._at = end
        if at >= self._listed_to:
            self._list_from(at)
        batch = self._listed[at - self._listed_from : end - self._listed_from]
        return batch[0] if self._single else batch

    def before(self) -> Sequence[Any]:
        order = self._order if self._order is not None else self._make()
        starts = range(max(self._begun % self._size, self._begun - NEIGHBOURS * self._size), self._begun, self._size)
        parts = (order[at : at + self._size] for at in starts)
        return [part.tolist() if isinstance(part, torch.Tensor) else list(part) for part in parts]

    def _list_from(self, at: int) -> None:
        """Of many batches at once: a list is cut in a tenth of the time."""
        if self._order is None:
            self._order = self._make()
        part = self._order[at : at + self._size * max(1, _LISTED // self._size)]
        self._listed = part.tolist() if isinstance(part, torch.Tensor) else list(part)
        self._listed_from, self._listed_to = at, at + len(part)

    def saved(self, batch: int, mark: Any) -> dict[str, Any]:
        samples = min(self._begun + (batch - self._start) * self._size, self._length)
        return {"kind": self._kind, "of": self._length, "samples": samples}


class Dealt:
    """This rank's part of an order that all ranks share. All of their batches are counted as one sequence."""

    mark = None
    marks: Mapping[int, Any] = MappingProxyType({})

    def __init__(self, of: Shape, facts: Facts, saved: dict[str, Any]) -> None:
        sampler = self._sampler = of.sampler
        self._single = of.batch_size is None
        self._deal: Deal = sampler.deal(of.batch_size or 1, drop_last=of.drop_last, offset=saved.get("samples", 0))
        self._epoch, self._start, self._begun = facts.epoch, facts.start, saved.get("batches", 0)
        self._step = 0
        self.stride = sampler.num_replicas
        self.shift = self._begun + sampler.rank - facts.start * self.stride

    def __next__(self) -> Any:
        if self._step >= self._deal.steps:
            raise StopIteration
        batch = self._sampler.indices(self._deal.positions(self._step), self._epoch)
        self._step += 1
        return batch[0] if self._single else batch

    def before(self) -> Sequence[Any]:
        return ()  # nobody has to ask: it chooses from the whole data set

    def saved(self, batch: int, mark: Any) -> dict[str, Any]:
        steps = batch - self._start
        return _dealt(self._sampler, self._deal.consumed(steps), self._begun + steps * self.stride, self._epoch)


def _own(batch: Any) -> Any:
    """A sampler may give the same list again, filled anew, while we still need to know what was in it; or an iterator,
    which tells that only once.
    """
    if isinstance(batch, list | numpy.ndarray):
        return batch.copy()
    if isinstance(batch, torch.Tensor):
        return batch.clone()
    return list(batch) if isinstance(batch, Iterator) else batch


class Walk:
    """Any other sampler: one step after the other, with random numbers of its own if it draws from global ones.

    So its order hangs on the epoch's seed alone, and neither the trainer's draws nor a stop in between change it.
    """

    stride, shift = 1, 0

    def __init__(self, of: Shape, facts: Facts, saved: dict[str, Any]) -> None:
        self._of, self._sampler, self._start = of, of.sampler, facts.start
        self._surroundings = Enclosed(mix(facts.seed, _SAMPLER), facts.order)
        self._generator = self._own_generator(facts.order)
        self._neighbours: deque[Any] = deque(maxlen=NEIGHBOURS)  # given already, and drawn again
        self._marks: dict[int, Any] = {}
        self._kept: dict[str, Any] = {}
        if saved.get("generator") is not None:
            generators.unpack(self._generator, saved["generator"])
        if self._start and saved.get("epoch") is not None and hasattr(self._sampler, "set_epoch"):
            self._sampler.set_epoch(saved["epoch"])
        if type(self._generator) is torch.Generator:
            self._kept["generator"] = generators.pack(self._generator)
        if isinstance(getattr(self._sampler, "epoch", None), int):
            self._kept["epoch"] = self._sampler.epoch
        self._over = bool(saved.get("over"))
        self._begin(saved)

    def _own_generator(self, order: Origin) -> Any:
        if type(self._sampler) is RandomSampler:  # with replacement, or longer than its data set
            source, made = self._sampler, order.generator()
            self._sampler = RandomSampler(source.data_source, source.replacement, source._num_samples, made)
            return None
        return getattr(self._sampler, "generator", None)

    def _begin(self, saved: dict[str, Any]) -> None:
        states = saved.get("state")
        with self._surroundings:
            self._steps: Iterator[Any] = resumed(self._sampler, tuple(states) if states is not None else None)
            self._states = States(self._sampler, self._steps)
            # A generator has not begun to run, and its sampler does not know yet where it is: we do.
            self._mark = Kept(self._states.take() if states is None else tuple(states), self._over)
            steps = self._start if states is None else saved.get("again", 0)
            for number in range(steps):
                self._remember(self._start - steps + number - 1)
                try:
                    self._neighbours.append(self._step())
                except StopIteration:
                    raise StateMismatch("batches of its sampler", self._start, number, "there are fewer") from None
            self._remember(self._start - 1)

    def _remember(self, batch: int) -> None:
        if self._states.there_are_any:
            self._marks[batch] = self._mark

    def __next__(self) -> Any:
        with self._surroundings:
            return self._step()

    def _step(self) -> Any:
        size = self._of.batch_size
        if self._over:
            raise StopIteration
        if size is None:
            batch = _own(next(self._steps))
        else:
            batch = list(islice(self._steps, size))
            self._over = len(batch) < size
            if not batch or (self._of.drop_last and self._over):
                raise StopIteration
        if self._states.there_are_any:
            self._mark = Kept(self._states.take(), self._over)
        return batch

    @property
    def marks(self) -> Mapping[int, Any]:
        return self._marks

    def before(self) -> Sequence[Any]:
        return self._neighbours

    @property
    def mark(self) -> Callable[[], Any] | None:
        return (lambda: self._mark) if self._states.there_are_any else None

    def saved(self, batch: int, mark: Any) -> dict[str, Any]:
        if mark is None:
            return _walked(self._of.sampler, **self._kept)
        if isinstance(mark.state, Unsaved):
            raise unpack_error(mark.state.error)[0]
        return _walked(self._of.sampler, **self._kept, state=list(mark.state), over=mark.over)
