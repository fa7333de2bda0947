"""Gets the samples of a batch from the data set, noting in the logbook which one it is on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from time import monotonic
from typing import Any, Protocol

from holdfast._transport.messages import Plan
from holdfast.errors import StopInItem

from .describe import describe
from .job import Job
from .life import unwrap
from .moving import Mover

SHORT = 0.01  # seconds for a run of samples, after which the next may be twice as long, ...
LONGEST = 1024  # ... up to so many samples


class Notes(Protocol):
    """Where a fetcher notes the sample it is on; the logbook in a process."""

    place: Any
    since: Any


class Unnoted:
    """For loading in the trainer itself, which nobody has to watch."""

    def __init__(self) -> None:
        self.place: Any = {(): -1}
        self.since: Any = {(): 0.0}


Fetch = Callable[[Any], Any]


def fetcher(job: Job, notes: Notes, mover: Mover | None = None) -> Fetch:
    """A function from an index (or list of them) to a sample (or list of them) of a map-style data set."""
    dataset = unwrap(job.dataset)
    if not job.auto_collation:
        return _guarded(dataset.__getitem__, dataset)
    whole = getattr(dataset, "__getitems__", None)
    if whole:
        return _guarded(whole, dataset)
    return _map_style(dataset, notes, mover)


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
        notes.place[()], notes.since[()] = position, monotonic()
        samples.append(plan.given[position] if position in plan.given else fetch(index))
    return samples if job.auto_collation else samples[0]


def next_run(length: int, seconds: float) -> int:
    """Every sample notes its place. The time is noted for a run of them, which may be longer if the last one, of
    ``length``, was over in no time: where a sample takes microseconds, a look at the clock for each of them would be
    most of what it costs to be watched. A run may go on through whole batches.
    """
    if seconds >= SHORT:
        return 1
    return 2 * length if length < LONGEST else LONGEST


def _map_style(dataset: Any, notes: Notes, mover: Mover | None) -> Fetch:
    place, since = notes.place, notes.since
    length = 1  # of a run
    left = 0  # samples that the last run has left for batches to come

    def fetch(indices: Any) -> list[Any]:
        nonlocal left
        indices = indices if type(indices) is list else list(indices)
        places, size = enumerate(indices), len(indices)
        samples: list[Any] = []
        try:
            for place[()], index in places:
                samples.append(dataset[index])
                break  # the first one is looked at
            if mover is not None and samples and mover.begin(samples[0], size):
                samples[0], keep = mover.move(samples[0]), mover.into(samples)
                for place[()], index in places:
                    since[()] = monotonic()
                    keep(dataset[index])
            elif size <= left:
                left -= size
                samples += [dataset[index] for place[()], index in places]
            else:
                in_runs(samples, places, size)
        except StopIteration as stop:
            index = indices[place[()]]
            raise StopInItem(index, describe(dataset, index)) from stop
        return samples

    def in_runs(samples: list[Any], places: Iterator[tuple[int, Any]], size: int) -> None:
        nonlocal length, left
        began = since[()]  # noted as the batch was begun
        if length == 1:
            since[()] = began = monotonic()
        while len(samples) < size:
            run = islice(places, length) if len(samples) + length < size else places
            samples += [dataset[index] for place[()], index in run]
            since[()] = now = monotonic()
            length, began = next_run(length, now - began), now
        left = length

    return fetch


def _guarded(get: Fetch, dataset: Any) -> Fetch:
    def fetch(index: Any) -> Any:
        try:
            return get(index)
        except StopIteration as stop:
            raise StopInItem(index, describe(dataset, index)) from stop

    return fetch
