"""An iterable data set in one epoch: items drawn, counted, put into batches, and gone through again where need be."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import islice
from time import monotonic
from typing import Any, Protocol

from holdfast._core.mixing import mix
from holdfast._transport.messages import Mark, Past, Report
from holdfast.errors import StreamDiffers, StreamLost

from .digests import fingerprint
from .fetch import Notes, next_run
from .job import Job
from .life import unwrap
from .sharding import Share, origin
from .stateful import States, resumed

MENDED = 8  # times that items are taken out of a batch and others put in before it is not the items' fault
IN_A_ROW = 1000  # items that raise one after the other before their stream is given up
_NOT_TWICE = "its worker ended, and it failed when a new one went through it again"


class EndOfStream(Exception):
    """An iterable data set has no further batch."""


class Interrupted(Exception):
    """The epoch ended, or everything did, while we waited for an answer."""


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


def opened(job: Job, notes: Notes, meet: Meet | None, seat: int, past: Past) -> Stream:
    """The stream of this worker for an epoch, at the state where its past is to be gone through."""
    dataset = unwrap(job.dataset)
    stream = resumed(dataset, past.state, past.over)
    # What other numbers of workers took is counted from the beginning: a stream that is taken up later cannot tell.
    states = States(dataset, stream) if not past.dealt else States(None, None)
    if job.shard is not None:
        stream = job.shard.share(stream, seat, max(1, job.seats), past.dealt)
        if past.items:
            stream.begun()
    return Stream(stream, states, job, notes, meet, past, seat if job.seats else None)


class Stream:
    """An iterable data set in one epoch. ``items``: how many are behind us, those that failed among them.

    ``taken_out``: items that an earlier life could not put into a batch. ``replaying``: what raises only has to count.
    """

    def __init__(
        self,
        stream: Iterator[Any],
        states: States,
        job: Job,
        notes: Notes,
        meet: Meet | None,
        past: Past,
        seat: int | None,
    ) -> None:
        self._seat = seat
        self._stream, self._next, self._meet, self._states = stream, stream.__next__, meet, states
        self._generator = isinstance(origin(stream), Generator)
        self._auto, self._drop_last, self._every = job.auto_collation, job.drop_last, job.snapshot_every
        self._place, self._since, self._run = notes.place, notes.since, 1
        self._ended = self._replaying = False
        self._unsure = False  # an item that was well cannot be had again: those after it may draw other random numbers
        self._mended = self._failures = 0  # times that this batch was mended; items that have raised in a row
        self._last: Any = None  # of the items of this batch
        self._taken_out = frozenset(past.taken_out)
        self.batches, self.items, self.digest = past.batches - past.since, past.items, past.digest
        self.origins: list[int] = []  # of the samples of this batch: which items they are

    def here(self) -> Mark:
        """Before the first batch, or behind the last."""
        return Mark(self.items, self.digest, self._states.take())

    def mark(self) -> Mark:
        """Behind one more batch."""
        self._count(checked=self._every != 1 or not self._states.there_are_any)  # else nobody goes through it again
        taken = self._ended or (self._every and self.batches % self._every == 0)
        return Mark(self.items, self.digest, self._states.take() if taken else None, self._ended)

    def replay(self, past: Past, places: Any, begin: Callable[[int], None]) -> None:
        """Go once more through batches that were given already, each begun by its number. It has to be the same."""
        for number in range(self.batches, past.batches):
            begin(number)
            try:
                self._pass(places, failed=number in past.failed)
            except EndOfStream:
                raise StreamDiffers(self._seat, past.batches) from None
            self._count(checked=True)
        if self.digest != past.expected and not self._unsure:
            raise StreamDiffers(self._seat, past.batches)
        self.digest = past.expected

    def _pass(self, places: Any, *, failed: bool) -> None:
        """It has to end where it did then, or what comes after it would be something else."""
        self._replaying = not failed
        try:
            self(places)
        except (EndOfStream, Interrupted):
            raise
        except Exception as error:
            if not failed:
                raise StreamLost(self._seat, self.items - 1, _NOT_TWICE) from error
        finally:
            self._replaying = False

    def _count(self, *, checked: bool) -> None:
        self.batches += 1
        last, self._last = self._last, None
        if checked:
            self.digest = mix(self.digest ^ (fingerprint(last) or 0), self.items)

    def __call__(self, places: Any) -> Any:
        self._mended = 0
        self.origins.clear()
        samples = self._filled([], len(places) if self._auto else 1)
        return samples if self._auto else samples[0]

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
        while not self._ended and len(samples) < size:
            try:
                self._draw(samples, size if not self._taken_out else len(samples) + 1)
            except StopIteration:
                self._ended = True
            except Exception as error:
                self._put(samples, self._met(error))
        if not samples or (self._drop_last and len(samples) < size):
            raise EndOfStream
        return samples

    def _draw(self, samples: list[Any], size: int) -> None:
        """Items as they come, until there are ``size`` samples. Small things done for each of them are what makes a
        stream slow, so what can be done for all of them is."""
        place, draw, keep, before = self._place, self._next, samples.append, len(samples)
        places = iter(range(before, size))
        try:
            while len(samples) < size:
                self._since[()] = began = monotonic()
                for place[()] in islice(places, self._run):
                    keep(draw())
                self._run = next_run(self._run, monotonic() - began)
        finally:
            if drawn := len(samples) - before:
                self._last, self._failures = samples[-1], 0
                self.origins += range(self.items, self.items + drawn)
                self.items += drawn
                if self.items - 1 in self._taken_out:
                    del samples[-1], self.origins[-1]

    def _put(self, samples: list[Any], value: Any) -> None:
        """In the place of an item that raised."""
        if value is TriedAgain:
            return
        self.items += 1
        if value is not Passed and self.items - 1 not in self._taken_out:
            samples.append(value)
            self.origins.append(self.items - 1)

    def _met(self, error: Exception) -> Any:
        self._failures += 1
        try:
            if self._meet is None and not self._replaying:
                raise error
            value = self._meet(error, self.items) if self._meet is not None else None
            if self._failures >= IN_A_ROW:
                raise StreamLost(None, self.items, f"it raised {self._failures} times in a row") from error
            if self._generator:
                raise StreamLost(None, self.items, "it is a generator, which ends with its first exception") from error
        except Exception:
            self.items += 1  # it is behind us, too
            raise
        self._unsure |= self._replaying
        if value is TriedAgain and isinstance(self._stream, Share):
            self._stream.again()
        return value
