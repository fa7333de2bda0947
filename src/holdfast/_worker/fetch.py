"""Gets the samples of a batch from the data set, noting in the logbook which one it is on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from time import monotonic
from typing import Any, Protocol

from holdfast._transport.logbook import SAMPLE, SINCE
from holdfast._transport.messages import Plan, Report
from holdfast.errors import StopInItem, StreamLost

from .describe import describe
from .job import Job
from .life import unwrap
from .sharding import Share, origin


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


MENDED = 8  # times that items are taken out of a batch and others put in before it is not the items' fault
IN_A_ROW = 1000  # items that raise one after the other before their stream is given up

Fetch = Callable[[Any], Any]


class Meet(Protocol):
    """What to do about an item of a stream that raised: a value in its place, ``Passed``, ``TriedAgain``, or raise."""

    def __call__(self, error: Exception, item: int) -> Any: ...


class Refused(Exception):
    """The policy says that the error of this report is to be raised."""

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self.report = report


class Passed:
    """Nothing takes its place: the next item does."""


class TriedAgain:
    """It is to be asked for, or to be put into a batch, once more."""


def fetcher(job: Job, notes: Notes, meet: Meet | None = None, seat: int = 0) -> Fetch:
    """A function from an index (or list of them) to a sample (or list of them), fresh for an epoch."""
    dataset = unwrap(job.dataset)
    if job.iterable:
        stream = iter(dataset)
        return Stream(job.shard.share(stream, seat, max(1, job.seats)) if job.shard else stream, job, notes, meet)
    if not job.auto_collation:
        return _guarded(dataset.__getitem__, dataset)
    whole = getattr(dataset, "__getitems__", None)
    return _guarded(whole, dataset) if whole else _map_style(dataset, notes)


def listed(index: Any) -> list[Any]:
    """The indices of a batch; a sampler may give any iterable."""
    try:
        return list(index)
    except TypeError:
        return [index]


def one_by_one(job: Job) -> Fetch:
    """The same for one index at a time, also where the data set would rather be asked for all at once."""
    dataset = unwrap(job.dataset)
    whole = getattr(dataset, "__getitems__", None) if job.auto_collation else None
    return _guarded((lambda index: whole([index])[0]) if whole else dataset.__getitem__, dataset)


def fetch_planned(plan: Plan, job: Job, notes: Notes) -> Any:
    """A batch of which some samples are given, or which is to be taken with care: each is noted."""
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
    """An iterable data set in one epoch. ``items``: how many are behind us, those that failed among them.

    ``taken_out``: items that an earlier life could not put into a batch. ``replaying``: what raises only has to count.
    """

    def __init__(self, stream: Iterator[Any], job: Job, notes: Notes, meet: Meet | None) -> None:
        self._stream, self._next, self._meet = stream, stream.__next__, meet
        self._generator = isinstance(origin(stream), Generator)
        self._auto, self._drop_last = job.auto_collation, job.drop_last
        self._numbers, self._times = notes.numbers, notes.times
        self._ended = self.replaying = False
        self._mended = 0
        self.items = 0
        self.taken_out: frozenset[int] = frozenset()
        self.origins: list[int] = []  # of the samples of this batch: which items they are

    def __call__(self, places: Any) -> Any:
        self._mended = 0
        if self._auto:
            self.origins.clear()
            return self._filled([], len(places))
        sample = self._one()
        self.origins = [self.items - 1]
        return sample

    def can_mend(self, reports: list[Report]) -> bool:
        """No batch could be made of these items; it may be without the guilty ones."""
        able = self._meet is not None and self._mended < MENDED
        return able and all(report.place is not None for report in reports)

    def mended(self, samples: Any, places: Any, guilty: list[Report], ask: Callable[[Report], Any]) -> Any:
        """The samples without the guilty ones, or with what is put in their place, and filled up."""
        self._mended += 1
        values = [ask(report) for report in guilty]
        if not self._auto:
            value = values[0]
            return self(places) if value is Passed else samples if value is TriedAgain else value
        for report, value in reversed(list(zip(guilty, values))):
            assert report.place is not None
            if value is Passed:
                del samples[report.place], self.origins[report.place]
            elif value is not TriedAgain:
                samples[report.place] = value
        return self._filled(samples, len(places))

    def _filled(self, samples: list[Any], size: int) -> list[Any]:
        numbers, times = self._numbers, self._times
        while len(samples) < size and not self._ended:
            numbers[SAMPLE], times[SINCE] = len(samples), monotonic()
            try:
                samples.append(self._one())
                self.origins.append(self.items - 1)
            except EndOfStream:
                self._ended = True
        if not samples or (self._drop_last and len(samples) < size):
            raise EndOfStream
        return samples

    def _one(self) -> Any:
        failures = 0
        while True:
            try:
                value = self._next()
            except StopIteration:
                raise EndOfStream from None
            except Exception as error:
                failures += 1
                value = self._met(error, failures)
            if value is not TriedAgain:
                self.items += 1
                if value is not Passed and self.items - 1 not in self.taken_out:
                    return value

    def _met(self, error: Exception, failures: int) -> Any:
        try:
            if self._meet is None and not self.replaying:
                raise error
            value = self._meet(error, self.items) if self._meet is not None else None
            if failures >= IN_A_ROW:
                raise StreamLost(None, self.items, f"it raised {failures} times in a row") from error
            if self._generator:
                raise StreamLost(None, self.items, "it is a generator, which ends with its first exception") from error
        except Exception:
            self.items += 1  # it is behind us, too
            raise
        if value is TriedAgain and isinstance(self._stream, Share):
            self._stream.again()
        return value
