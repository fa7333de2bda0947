"""Reads every sample once, with the product's own loader: its workers may die, and it knows of which sample.

What a worker tells of a stretch of samples takes a few hundred bytes, and a stretch a fifth of a second: so little is
lost when the scan itself is killed, and nothing is gained by longer ones.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch.utils.data import IterableDataset

from holdfast._worker.life import is_recipe
from holdfast.errors import HoldfastError, WorkerDied, WorkerStalled
from holdfast.fault import Fault
from holdfast.loader import DataLoader
from holdfast.policies import Again, Answer, Put, Stand
from holdfast.targets.mistake import Mistake, raised
from holdfast.targets.target import Target
from holdfast.tasks.making import default_seats

from .plan import Plan, planned
from .progress import Progress
from .reader import Absent, Failed, Reader, Stretch, grouped, stretch
from .roll import Roll
from .survey import CORRUPT, DEADLY, PROGRAM, Survey

STRETCH = 0.2  # seconds that a stretch should take
LONGEST = 4096  # samples of one
GROWTH = 4  # times the stretch before
STARTS = 5  # of a worker that does not get ready within the time of a sample
ALL_FAIL = {PROGRAM: 20, CORRUPT: 200}  # samples that all fail for one reason, from the first on: then it is not them
MOST_HELD = 1000  # that all fail, for several


@dataclass(frozen=True)
class Options:
    """``quarantine``: the kinds that are listed in ``output``. ``share``: of the samples, chosen by ``seed``."""

    output: Path
    workers: int | None = None
    timeout: float = 60.0
    limit: int | None = None
    share: float | None = None
    seed: int = 0
    budget: float | None = None
    quarantine: frozenset[str] = frozenset((CORRUPT, DEADLY))
    restart: bool = False


@dataclass
class Scan:
    """What was found. ``plan``: None for a stream. ``stopped``: why not all was read: "interrupted", "budget"."""

    target: Target
    options: Options
    workers: int
    survey: Survey
    roll: Roll
    plan: Plan | None = None
    before: int = 0  # samples that an earlier run has read
    stopped: str = ""


Hear = Callable[[Survey], None]


def is_stream(dataset: Any) -> bool:
    if is_recipe(dataset):
        from holdfast.recipe import look_into

        look_into(dataset)
    return isinstance(dataset, IterableDataset)


def scan(target: Target, options: Options, hear: Hear) -> Scan:
    """Until all is read, the budget is spent, or Ctrl-C. ``hear`` is told after every stretch."""
    plan = planned(target, options.share, options.seed, options.limit)
    progress = Progress(options.output, plan)
    roll = Roll(options.output)
    if options.restart:
        progress.remove()
    survey = progress.load() or Survey(len(plan))
    found = Scan(target, options, options.workers or default_seats(), survey, roll, plan, survey.count)
    progress.save(survey, now=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a loader's: on the number of workers, or numbers that repeat
        reading = _Reading(found, progress, hear)
        reading.run()
    if not found.stopped:
        progress.remove()
    elif reading.settled:
        progress.save(survey, now=True)
    return found


class _Reading:
    """One run over what is not read yet."""

    def __init__(self, found: Scan, progress: Progress, hear: Hear) -> None:
        assert found.plan is not None
        self._found, self._plan, self._survey = found, found.plan, found.survey
        self._progress, self._hear = progress, hear
        self._pace = Pace()
        self._held: list[Failed] | None = [] if not found.survey.count else None
        self.settled = True  # else an interrupt came while a stretch was taken in: what was saved before it holds

    def run(self) -> None:
        clock = Clock(self._survey, self._found.options.budget)
        batches = stretches(self._survey.done.gaps(len(self._plan)), self._pace)
        loader = loader_for(
            self._found,
            Reader(self._found.target.dataset, self._plan.keys),
            on_error=self._meet,
            batch_sampler=batches,
            collate_fn=stretch,
            in_order=False,
        )
        self._hear(self._survey)
        try:
            for told in each_of(loader, self._found.target):
                clock.note(told)
                self._take(told)
                self._hear(self._survey)
                if clock.spent():
                    self._found.stopped = "budget" if len(self._survey.done) < len(self._plan) else ""
                    break
        except KeyboardInterrupt:
            self._found.stopped = "interrupted"
        self._list_held()

    def _take(self, told: Stretch) -> None:
        self.settled = False
        self._pace.note(told)
        for failed in told.failed:
            self._list(failed)
        self._survey.add(told)
        if self._held is not None and not told.looks:
            self._stop_if_all_fail()
        if told.looks or (self._held and len(self._held) > MOST_HELD):
            self._list_held()
        self.settled = True
        if self._held is None:
            self._progress.save(self._survey)

    def _meet(self, fault: Fault) -> Answer:
        """As a policy. A sample that ended its worker is put aside; all else that a loader meets is no sample's."""
        if not isinstance(fault.error, WorkerDied | WorkerStalled):
            return Stand()
        if fault.batch is None:  # a worker does not get ready: the limit is one of samples, and may be short for that
            return Again() if fault.attempts < STARTS else Stand()
        if fault.index is None:  # not known yet: answered like the others, it is tried once more and will be
            return Put(Absent(-1))
        failed = buried(fault.error, fault.index, fault.where)
        if DEADLY in self._found.options.quarantine:
            self._found.roll.add(self._plan.key(fault.index), failed)
        self._survey.bury(failed)
        return Put(Absent(fault.index))

    # -- the file ------------------------------------------------------------------------------

    def _list(self, failed: Failed) -> None:
        if self._held is not None:
            self._held.append(failed)
        elif CORRUPT in self._found.options.quarantine and not failed.is_program:
            self._found.roll.add(self._plan.key(failed.position), failed)

    def _list_held(self) -> None:
        """Some sample is well, or there are no more: those that are not are to blame themselves."""
        held, self._held = self._held or [], None
        for failed in held:
            self._list(failed)

    def _stop_if_all_fail(self) -> None:
        groups = list(self._survey.groups.values())
        if len(groups) == 1 and groups[0].count >= ALL_FAIL.get(groups[0].kind, groups[0].count + 1):
            self._progress.remove()
            example = groups[0].examples[0]
            raise Mistake(
                f"each of the first {groups[0].count} samples failed: {groups[0].reason}",
                f"{example['where'] or self._plan.key(example['position'])} was the first; "
                "it is not the samples, or look at some from everywhere: --sample 1%",
            )


# -- the loader, for samples and streams -------------------------------------------------------


def loader_for(found: Scan, reader: Any, **how: Any) -> DataLoader[Any]:
    """With what the user's own loader does to workers."""
    theirs = found.target.loader
    if theirs is not None:
        how |= {"worker_init_fn": theirs.worker_init_fn, "multiprocessing_context": theirs.multiprocessing_context}
        how |= {"start": getattr(theirs, "start", "auto")}
    loader: DataLoader[Any] = DataLoader(
        reader,
        num_workers=found.workers,
        stall_timeout=found.options.timeout,
        allow_empty=True,
        **how,
    )
    loader.faults.warn = False  # they are told in the report
    return loader


def each_of(
    loader: DataLoader[Any], target: Target, expected: Callable[[Exception], bool] = lambda error: False
) -> Iterator[Stretch]:
    """What it raises, unless it is ``expected``, is no sample's fault: workers that do not start, and the like."""
    iterator: Any = None
    try:
        iterator = iter(loader)
        while True:
            try:
                told = next(iterator)
            except StopIteration:
                return
            except Exception as error:
                if not expected(error):
                    raise
            else:
                yield told
    except HoldfastError as error:
        raise Mistake(f"the scan of {target.text} cannot go on: {error}") from error
    except Exception as error:
        raise raised(f"the scan of {target.text} cannot go on: a worker", error) from error
    finally:
        if iterator is not None:
            iterator._shutdown_workers()


def buried(error: BaseException, position: int, where: str) -> Failed:
    """What ended or stopped a worker, as one line; the error's own text counts batches, which nobody knows."""
    if isinstance(error, WorkerStalled):
        kind = "stall"
        reason = f"no end in {error.seconds:.3g} s: {error.why}"
    else:
        assert isinstance(error, WorkerDied)
        kind = "death"
        oom = f": {error.verdict.oom}" if error.verdict.oom else ""
        reason = f"the process {error.verdict}{oom}"
    told = {"type": f"holdfast.{type(error).__name__}", "text": reason, "attributes": {}}
    return Failed(position, kind, where, reason, grouped(reason), told, time.time())


class Clock:
    """Keeps the time: a survey's is that of reading, and a budget that of the whole run, with the start of workers."""

    def __init__(self, survey: Survey, budget: float | None) -> None:
        self._survey, self._ends = survey, None if budget is None else time.monotonic() + budget
        self._last: float | None = None

    def note(self, told: Stretch) -> None:
        now = time.monotonic()
        self._survey.seconds += told.seconds if self._last is None else now - self._last
        self._last = now

    def spent(self) -> bool:
        return self._ends is not None and time.monotonic() > self._ends


class Pace:
    """How many samples are a stretch, from how long they take."""

    def __init__(self) -> None:
        self.size = 1

    def note(self, told: Stretch) -> None:
        each = told.seconds / max(1, told.size)
        fits = int(STRETCH / each) if each else LONGEST
        self.size = max(1, min(LONGEST, fits, GROWTH * (told.stop - told.first)))


def stretches(gaps: Iterator[tuple[int, int]], pace: Pace) -> Iterator[range]:
    """What is not read yet, in parts that are as long as the pace says when they are drawn."""
    for start, stop in gaps:
        while start < stop:
            end = min(stop, start + pace.size)
            yield range(start, end)
            start = end
