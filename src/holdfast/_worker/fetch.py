"""Gets the samples of a batch from the data set, noting in the logbook which one it is on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from time import monotonic
from typing import Any, Protocol

from holdfast._transport.logbook import SAMPLE, SINCE
from holdfast._transport.messages import Plan
from holdfast.errors import StopInItem, StreamLost

from .describe import describe
from .job import Job
from .life import unwrap


class Notes(Protocol):
    """Where a fetcher notes the sample it is on; the logbook in a process."""

    numbers: Any
    times: Any


class Unnoted:
    """For loading in the trainer itself, which nobody has to watch."""

    def __init__(self) -> None:
        self.numbers: Any = [0] * 4
        self.times: Any = [0.0] * 4


class EndOfStream(Exception):
    """An iterable data set has no further batch."""


Fetch = Callable[[Any], Any]


class Meet(Protocol):
    """What to do about an item of a stream that raised: give a value in its place, or ``Passed``, or raise."""

    def __call__(self, error: Exception, item: int) -> Any: ...


class Passed:
    """Nothing takes its place: the next item does."""


def fetcher(job: Job, notes: Notes, meet: Meet | None = None) -> Fetch:
    """A function from an index (or list of them) to a sample (or list of them), fresh for an epoch."""
    dataset = unwrap(job.dataset)
    if job.iterable:
        return Stream(iter(dataset), job, notes, meet)
    if not job.auto_collation:
        return _guarded(dataset.__getitem__, dataset)
    whole = getattr(dataset, "__getitems__", None)
    return _guarded(whole, dataset) if whole else _map_style(dataset, notes)


def one_by_one(job: Job) -> Fetch:
    """The same for one index at a time, also where the data set would rather be asked for all at once."""
    whole = getattr(job.dataset, "__getitems__", None) if job.auto_collation else None
    get = (lambda index: whole([index])[0]) if whole else job.dataset.__getitem__
    return _guarded(get, job.dataset)


def fetch_planned(plan: Plan, job: Job, notes: Notes) -> Any:
    """A batch of which some samples are given, or which has to be taken with care: each is noted."""
    fetch, samples = one_by_one(job), []
    for position, index in enumerate(plan.indices):
        notes.numbers[SAMPLE], notes.times[SINCE] = position, monotonic()
        samples.append(plan.given[position] if position in plan.given else fetch(index))
    return samples if job.auto_collation else samples[0]


def _map_style(dataset: Any, notes: Notes) -> Fetch:
    numbers, times = notes.numbers, notes.times

    def fetch(indices: Any) -> list[Any]:
        samples = []
        try:
            for position, index in enumerate(indices):
                numbers[SAMPLE], times[SINCE] = position, monotonic()
                samples.append(dataset[index])
        except StopIteration as stop:
            raise StopInItem(index, describe(dataset, index)) from stop
        return samples

    return fetch


def _guarded(get: Fetch, dataset: Any) -> Fetch:
    def fetch(index: Any) -> Any:
        try:
            return get(index)
        except StopIteration as stop:
            raise StopInItem(index, describe(dataset, index)) from stop

    return fetch


class Stream:
    """An iterable data set in one epoch. ``items``: how many it was asked for."""

    def __init__(self, stream: Iterator[Any], job: Job, notes: Notes, meet: Meet | None) -> None:
        self._next, self._meet = stream.__next__, meet
        self._generator = isinstance(stream, Generator)
        self._auto, self._drop_last = job.auto_collation, job.drop_last
        self._numbers, self._times = notes.numbers, notes.times
        self._ended = False
        self.items = 0
        self.origins: list[int] = []  # of the samples of this batch: which items they are

    def __call__(self, places: Any) -> Any:
        if not self._auto:
            return self._one()
        samples: list[Any] = []
        self.origins.clear()
        self.fill(samples, len(places))
        return self.checked(samples, len(places))

    def fill(self, samples: list[Any], size: int) -> None:
        """More items, up to ``size`` in all, as long as there are any."""
        numbers, times = self._numbers, self._times
        while len(samples) < size and not self._ended:
            numbers[SAMPLE], times[SINCE] = len(samples), monotonic()
            try:
                samples.append(self._one())
                self.origins.append(self.items - 1)
            except EndOfStream:
                self._ended = True

    def checked(self, samples: list[Any], size: int) -> list[Any]:
        if not samples or (self._drop_last and len(samples) < size):
            raise EndOfStream
        return samples

    def _one(self) -> Any:
        while True:
            self.items += 1
            try:
                return self._next()
            except StopIteration:
                raise EndOfStream from None
            except Exception as error:
                if self._meet is None:
                    raise
                value = self._met(error)
                if value is not Passed:
                    return value

    def _met(self, error: Exception) -> Any:
        assert self._meet is not None
        value = self._meet(error, self.items - 1)
        if self._generator:
            raise StreamLost(None, self.items - 1, "it is a generator, which ends with its first exception") from error
        return value
