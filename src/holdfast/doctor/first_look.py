"""The first samples one by one, without workers: do they come, what do they cost, are they the same a second time?

And what has loading them changed. Runs in a probe.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any
from zlib import crc32

from holdfast._core.mixing import mix
from holdfast._worker.describe import describe
from holdfast._worker.life import unwrap
from holdfast._worker.seeding import seed_all
from holdfast.audit.generators import Drawn, Watch
from holdfast.errors import NoneSample, StopInItem

from .complaints import Complaint, of_error
from .contents import Leaves, leaves
from .plan import SEED, Plan, drawn
from .probe import Note, Report
from .traces import Change, changes, trace

SAMPLES = 32


@dataclass(frozen=True)
class Order:
    """What the sampler gave: ``whole`` when there is no more. ``promised``: how many batches ``len(loader)`` says there
    are; of a stream, how many items."""

    batches: list[list[Any]]
    whole: bool
    promised: int | None


@dataclass(frozen=True)
class FirstLook:
    """``first``, ``again`` and, of a stream, ``otherwise`` (with another seed): samples by their index as Python writes
    it, and leaf by leaf."""

    first: dict[str, Leaves]
    again: dict[str, Leaves] = field(default_factory=dict)
    otherwise: dict[str, Leaves] = field(default_factory=dict)
    seconds: float = 0.0  # for one sample, at the median
    complaints: tuple[Complaint, ...] = ()
    changed: tuple[Change, ...] = ()
    drawn: tuple[Drawn, ...] = ()
    once: bool = False  # a stream whose iterator is always the same one


def order(plan: Plan) -> Callable[[Report, Note], None]:
    """Draws the order of the samples, in a probe: samplers keep state, too."""

    def work(report: Report, note: Note) -> None:
        seed_all(SEED)
        batches, whole = ([], False) if plan.iterable else drawn(plan)
        report(Order(batches, whole, _promised(plan)))

    return work


def first_look(plan: Plan, seconds: float) -> Callable[[Report, Note], None]:
    def work(report: Report, note: Note) -> None:
        dataset = unwrap(plan.dataset)
        before, watch = trace(dataset), Watch(dataset)
        walk = _stream(dataset) if plan.iterable else _samples(dataset, plan)
        looked, indices = _pass(walk, dataset, note, SEED, time.monotonic() + seconds)
        report(looked)
        changed, moved = tuple(changes(before, trace(dataset))), tuple(watch.drawn())
        walk = _stream(dataset) if plan.iterable else _each(dataset, indices)
        again, _ = _pass(walk, dataset, note, SEED, time.monotonic() + 2 * seconds, len(indices))
        looked = replace(looked, again=again.first, changed=changed, drawn=moved)
        if plan.iterable:
            other, _ = _pass(_stream(dataset), dataset, note, SEED + 1, time.monotonic() + seconds, len(indices))
            looked = replace(looked, otherwise=other.first, once=iter(dataset) is iter(dataset))
        report(looked)

    return work


_Walk = Iterator[tuple[Any, Callable[[], Any]]]


def _pass(
    walk: _Walk, dataset: Any, note: Note, seed: int, until: float, most: int = SAMPLES
) -> tuple[FirstLook, list[Any]]:
    """Each sample with random numbers of its own, as long as there is time; and the indices of those that came."""
    came: list[Any] = []
    found: dict[str, Leaves] = {}
    times: list[float] = []
    complaints: list[Complaint] = []
    seed_all(seed)
    for index, get in islice(walk, most):
        seed_all(mix(seed, crc32(repr(index).encode())))
        note.on(index)
        began = time.monotonic()
        try:
            sample = get()
        except _Over:
            break
        except Exception as error:
            complaints.append(_complaint(dataset, index, error))
            continue
        finally:
            times.append(time.monotonic() - began)
            note.off()
        if sample is None:
            complaints.append(_complaint(dataset, index, NoneSample(index, "sample", describe(dataset, index))))
        else:
            came.append(index)
            found[repr(index)] = leaves(sample)
        if time.monotonic() > until:
            break
    median = sorted(times)[len(times) // 2] if times else 0.0
    return FirstLook(found, seconds=median, complaints=tuple(complaints)), came


class _Over(Exception):
    """The stream has ended."""


def _samples(dataset: Any, plan: Plan) -> _Walk:
    return _each(dataset, plan.indices())


def _each(dataset: Any, indices: list[Any]) -> _Walk:
    whole = getattr(dataset, "__getitems__", None)

    def getter(index: Any) -> Callable[[], Any]:
        def get() -> Any:
            try:
                return whole([index])[0] if whole else dataset[index]
            except StopIteration as stop:
                raise StopInItem(index, describe(dataset, index)) from stop

        return get

    return ((index, getter(index)) for index in indices)


def _stream(dataset: Any) -> _Walk:
    items: list[Any] = []

    def get() -> Any:
        if not items:
            items.append(iter(dataset))
        try:
            return next(items[0])
        except StopIteration:
            raise _Over from None

    return ((ordinal, get) for ordinal in range(SAMPLES))


def _complaint(dataset: Any, index: Any, error: Exception) -> Complaint:
    return of_error(error, repr(index), describe(dataset, index, error))


def _promised(plan: Plan) -> int | None:
    counted = plan.dataset if plan.iterable else plan.loader
    try:
        return None if counted is None else len(counted)
    except (TypeError, NotImplementedError):
        return None
