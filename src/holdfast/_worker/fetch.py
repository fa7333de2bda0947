"""Gets the samples of a batch from the data set, noting in the logbook which one it is on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from .job import Job


class Notes(Protocol):
    """What a fetcher writes into; the logbook in a process."""

    def note_sample(self, sample: int) -> None: ...


class Unnoted:
    """For loading in the trainer itself, which nobody has to watch."""

    def note_sample(self, sample: int) -> None: ...


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
    note = notes.note_sample

    def fetch(indices: Any) -> list[Any]:
        samples = []
        try:
            for position, index in enumerate(indices):
                note(position)
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
    ended = False

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
            notes.note_sample(position)
            try:
                samples.append(next(stream))
            except StopIteration:
                ended = True
                break
        if not samples or (job.drop_last and len(samples) < len(places)):
            raise EndOfStream
        return samples

    return fetch
