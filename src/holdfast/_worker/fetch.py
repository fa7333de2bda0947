"""Gets the samples of a batch from the data set, noting in the logbook which one it is on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, Protocol

from holdfast._transport.logbook import SAMPLE, SINCE

from .job import Job


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


def fetcher(job: Job, notes: Notes) -> Fetch:
    """A function from an index (or list of them) to a sample (or list of them), fresh for an epoch."""
    if job.iterable:
        return _iterable(iter(job.dataset), job, notes)
    if not job.auto_collation:
        return _guarded(job.dataset.__getitem__)
    whole = getattr(job.dataset, "__getitems__", None)
    return _guarded(whole) if whole else _map_style(job.dataset, notes)


def _map_style(dataset: Any, notes: Notes) -> Fetch:
    numbers, times = notes.numbers, notes.times

    def fetch(indices: Any) -> list[Any]:
        samples = []
        try:
            for position, index in enumerate(indices):
                numbers[SAMPLE], times[SINCE] = position, monotonic()
                samples.append(dataset[index])
        except StopIteration as stop:
            raise _stop_is_no_end(index) from stop
        return samples

    return fetch


def _guarded(get: Fetch) -> Fetch:
    def fetch(index: Any) -> Any:
        try:
            return get(index)
        except StopIteration as stop:
            raise _stop_is_no_end(index) from stop

    return fetch


def _stop_is_no_end(index: Any) -> RuntimeError:
    """StopIteration out of a map-style data set would end the epoch early, and silently."""
    return RuntimeError(f"dataset[{index!r}] raised StopIteration; only an iterable dataset ends that way")


def _iterable(stream: Iterator[Any], job: Job, notes: Notes) -> Fetch:
    numbers, times, ended = notes.numbers, notes.times, False

    def fetch(places: Any) -> Any:
        nonlocal ended
        if ended:
            raise EndOfStream
        if not job.auto_collation:
            try:
                return next(stream)
            except StopIteration:
                raise EndOfStream from None
        samples = []
        for position in range(len(places)):
            numbers[SAMPLE], times[SINCE] = position, monotonic()
            try:
                samples.append(next(stream))
            except StopIteration:
                ended = True
                break
        if not samples or (job.drop_last and len(samples) < len(places)):
            raise EndOfStream
        return samples

    return fetch
