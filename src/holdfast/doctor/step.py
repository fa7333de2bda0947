"""One step of the ramp: the plan loaded with so many workers, once to see what comes, once to see how fast.

The two are apart because looking into every sample takes time, and keeps batches from being collated where they are
handed over. Runs in a probe.
"""

from __future__ import annotations

import itertools
import os
import pickle
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import torch

from holdfast.errors import AllSamplesBad, CannotSend
from holdfast.fault import Fault
from holdfast.ledger import Ledger
from holdfast.loader import DataLoader
from holdfast.policies import Answer, Skip, Stand

from .complaints import Complaint, of_error, of_fault
from .gauges import Reading, read
from .plan import MOST, SEED, Plan, Repeated
from .probe import Note, Report
from .watching import Seen, Watched, noted

_THIRDS = 3
_MOST_ERRORS = 8  # batches that fail one after the other before a step is given up
_MOST_ENDS = 2  # workers that a step may lose to samples that kill or hang


@dataclass(frozen=True)
class Came:
    """What came with so many workers: batches by their number, without those that failed."""

    workers: int
    batches: dict[int, Seen]
    ended: bool  # of a stream: there was no more
    collating: float  # share of the time that making batches of samples took; without workers
    whole: bool = True  # all of the plan was asked for: nothing that had ended workers before was left out


@dataclass(frozen=True)
class Step:
    """Figures of one step. Shares are of the time of all workers; without workers, of the process that loads."""

    workers: int
    start: float  # seconds until the first batch came
    rate: float  # samples in a second
    samples: int  # that were measured
    seconds: float  # in which
    cpu: float  # seconds of workers for one sample
    trainer_cpu: float  # seconds of the trainer for one sample
    busy: float  # share on the CPU
    queued: float  # share in the queue for it
    uss: int  # bytes of all workers together, at the end
    pss: int
    descriptors: int
    memory_grown: tuple[int, int]  # bytes, in the second and in the last third
    descriptors_grown: tuple[int, int]
    collating: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Terms:
    """``contents`` and ``measure``: seconds for each of the two; ``patience``: for one sample."""

    contents: float
    measure: float
    patience: float


def steps(plan: Plan, numbers: list[int], terms: Terms) -> Callable[[Report, Note], None]:
    """Reports, for each number of workers: `Complaint` as they come, then `Came`, then `Step`."""

    def work(report: Report, note: Note) -> None:
        left = plan
        for workers in numbers:
            telling = Telling(tell=partial(_tell, report, workers))
            seen = left if workers else replace(left, dataset=noted(left.dataset, note))
            came = contents(seen, workers, terms, telling)
            report(replace(came, whole=left is plan))
            left = left.without(telling.deadly) if telling.deadly else left
            if came.batches and (left.batches or left.iterable):
                step = _measured(replace(seen, batches=left.batches), workers, terms, telling)
                if step is not None:
                    report(replace(step, collating=came.collating))

    return work


def _tell(report: Report, workers: int, complaint: Complaint) -> None:
    report(replace(complaint, workers=workers))


@dataclass(frozen=True)
class Telling(Skip):
    """Skips, and tells at once: a step that is cut off has told all that it met. Gives up on what ends many workers."""

    tell: Callable[[Complaint], None] = lambda complaint: None
    deadly: set[str] = field(default_factory=set)

    def _answer(self, fault: Fault, ledger: Ledger) -> Answer | None:
        self.tell(of_fault(fault))
        if fault.kind in ("death", "stall"):
            self.deadly.add(repr(fault.index))
        return super()._answer(fault, ledger) if len(self.deadly) <= _MOST_ENDS else Stand()


# -- contents ----------------------------------------------------------------------------------


def contents(plan: Plan, workers: int, terms: Terms, telling: Telling) -> Came:
    stock = not isinstance(plan.loader, DataLoader)
    watched = Watched(plan.collate_fn, makes_batches=plan.makes_batches, pickles=stock and not plan.by_threads)
    loader = plan.made(workers, watched, plan.batches, terms.patience, telling)
    batches: dict[int, Seen] = {}
    ended, began = True, 0.0
    with closing(_batches(loader, telling)) as coming:
        for number, packed in coming:
            began = began or time.monotonic()  # not the time that workers take to start
            seen: Seen = pickle.loads(packed)
            batches[number] = seen
            if seen.unsent is not None:
                telling.tell(of_error(CannotSend(*seen.unsent), "", ""))
            if time.monotonic() > began + terms.contents or len(batches) * plan.batch_size > MOST:
                ended = False
                break
    later = [seen.collating for seen in batches.values()][1:] if not workers else []  # since ``began``
    return Came(workers, batches, ended, sum(later) / (time.monotonic() - began) if later else 0.0)


def _batches(
    loader: DataLoader[Any], telling: Telling, *, again: bool = False
) -> Generator[tuple[int, Any], None, None]:
    """What comes, by its number; what fails is told. ``again``: when it is over, it begins anew."""
    torch.manual_seed(SEED)  # from which the seed of the epoch is drawn
    iterator: Any = None
    failed, came = 0, False
    try:
        for number in itertools.count():
            known = len(loader.faults)
            try:
                if iterator is None:
                    iterator = iter(loader)
                batch = next(iterator)
            except StopIteration:
                if not (again and came):
                    return
                iterator, came = iter(loader), False
                continue
            except Exception as error:
                failed += 1
                new = loader.faults[known:]
                if not isinstance(error, AllSamplesBad):  # of which each has been told
                    telling.tell(of_fault(new[-1]) if new else of_error(error, "", ""))
                if iterator is None or failed == _MOST_ERRORS or len(telling.deadly) > _MOST_ENDS:
                    return
                continue
            failed, came = 0, True
            yield number, batch
    finally:
        if hasattr(iterator, "_shutdown_workers"):
            iterator._shutdown_workers()


# -- rates -------------------------------------------------------------------------------------


def _measured(plan: Plan, workers: int, terms: Terms, telling: Telling) -> Step | None:
    """None when no batch came."""
    loader = plan.made(workers, plan.collate_fn, Repeated(plan.batches), terms.patience, telling)
    sizes = itertools.cycle(map(len, plan.batches)) if plan.batches else itertools.repeat(plan.batch_size)
    began = time.monotonic()
    readings: list[Reading] = []
    samples, start, coming = 0, 0.0, _batches(loader, telling, again=plan.iterable)
    with closing(coming):
        for number, (_, size) in enumerate(zip(coming, sizes)):
            now = time.monotonic()
            samples += size
            start = start or now - began
            warm = number >= workers or now - began > terms.measure
            if warm and (not readings or now >= readings[0].at + len(readings) * terms.measure / _THIRDS):
                readings.append(read(_pids(loader), samples))
            if len(readings) > _THIRDS:
                break
        else:
            readings.append(read(_pids(loader), samples))
    return _figures(workers, start, readings) if samples else None


def _pids(loader: DataLoader[Any]) -> list[int]:
    """Of those that load."""
    if not loader.num_workers:
        return [os.getpid()]
    running: Any = loader._run.iterator()
    return [process.pid for process in getattr(running, "_workers", []) if process.pid]


def _figures(workers: int, start: float, readings: list[Reading]) -> Step:
    first, last = readings[0], readings[-1]
    samples, seconds = last.samples - first.samples, last.at - first.at
    if not samples:  # too slow for a second batch after the first ones: they are all there is
        samples, seconds = first.samples, max(start, 1e-9)
    both = [(first.processes[pid], last.processes[pid]) for pid in last.processes.keys() & first.processes.keys()]
    cpu, queued = sum(b.cpu - a.cpu for a, b in both), sum(b.queued - a.queued for a, b in both)
    lives = max(1, workers) * seconds
    return Step(
        workers,
        start,
        samples / seconds,
        samples,
        seconds,
        cpu / samples,
        (last.trainer - first.trainer) / samples,
        min(1.0, cpu / lives),
        min(1.0, queued / lives),
        sum(used.uss for used in last.processes.values()),
        sum(used.pss for used in last.processes.values()),
        sum(used.descriptors for used in last.processes.values()),
        _grown(readings, "uss"),
        _grown(readings, "descriptors"),
    )


def _grown(readings: list[Reading], what: str) -> tuple[int, int]:
    """In the second third, and in the last: by those processes that were there all the time."""
    if len(readings) <= _THIRDS:
        return 0, 0
    _, second, third, last = readings[: _THIRDS + 1]
    stayed = second.processes.keys() & third.processes.keys() & last.processes.keys()
    totals = [sum(getattr(at.processes[pid], what) for pid in stayed) for at in (second, third, last)]
    return totals[1] - totals[0], totals[2] - totals[1]
