"""The ramp: the same samples with 0 workers, 1, 2, 4 …, compared with each other and measured.

Every step runs in a probe, so that nothing happens to the objects here. Steps with workers share one: workers have
copies of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from holdfast._worker.describe import describe
from holdfast.targets.mistake import Mistake
from holdfast.targets.target import Target

from . import probe
from .complaints import BAD_SAMPLES, Complaint, of_death, of_error, of_stall, symptoms_of
from .coverage import coverage, short
from .first_look import FirstLook, Order, first_look, order
from .plan import MOST, Plan, plan_of
from .probe import Note, Outcome, Report
from .sameness import Mismatch, Suspects, blamed_on_handles, judged, mismatch
from .step import Came, Step, Terms, steps
from .symptom import Symptom

MOST_WORKERS = 8
CONTENTS, MEASURE = 2.0, 1.5  # seconds for the two parts of a step, at most
_CASUALTIES = 3  # samples that end a probe before the rest is given up
Work = Callable[[Report, Note], None]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Ramp:
    """``compared``: samples that were loaded with workers and without. ``unlooked``: what was not looked at, why."""

    steps: tuple[Step, ...]
    symptoms: tuple[Symptom, ...]
    compared: int
    unlooked: tuple[str, ...]
    grown: tuple[str, ...] = ()  # containers in the data set, or its modules, that loading has filled
    watched: int = 0  # samples that were loaded one by one, while generators in the data set were watched
    batch: tuple[int, int] | None = None  # bytes of one, and tensors in it, where batches were as large as theirs


class Budget:
    """Seconds for all of it."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self._until = seconds, time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self._until - time.monotonic())

    @property
    def patience(self) -> float:
        """For one sample."""
        return min(10.0, max(1.0, self.seconds / 6))


def numbers(cpus: int) -> list[int]:
    """0, 1, 2, 4 … up to twice the CPUs."""
    most = min(2 * cpus, MOST_WORKERS)
    return [0, *takewhile(lambda workers: workers <= most, (1 << power for power in range(8)))]


def ramp(target: Target, workers: Sequence[int], budget: Budget, progress: Progress) -> Ramp:
    return _Examiner(target, workers, budget, progress).examined()


@dataclass
class _Examiner:
    """Goes up the ramp once."""

    target: Target
    workers: Sequence[int]
    budget: Budget
    progress: Progress
    plan: Plan = field(init=False)
    complaints: list[Complaint] = field(default_factory=list)
    came: dict[int, Came] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    symptoms: list[Symptom] = field(default_factory=list)
    unlooked: list[str] = field(default_factory=list)
    cut: bool = False  # batches are smaller than the loader's own

    def __post_init__(self) -> None:
        self.plan = plan_of(self.target)

    def examined(self) -> Ramp:
        self.progress("first samples")
        ordered = self._ordered()
        look = self._first_look() if ordered is not None else None
        compared = 0
        if ordered is not None and look is not None:
            terms = self._terms(look)
            self._climb(terms)
            compared = self._compare(look, terms, ordered)
            self._blame_handles()
        symptoms = (*symptoms_of(self.complaints), *self.symptoms)
        grown = tuple(change.path for change in look.changed if change.grew) if look is not None else ()
        watched = len(look.first) if look is not None else 0
        return Ramp(tuple(self.steps), symptoms, compared, tuple(self.unlooked), grown, watched, self._batch())

    # -- what there is to load -----------------------------------------------------------------

    def _ordered(self) -> Order | None:
        outcome = probe.run(order(self.plan), self.budget.left / 3, self.budget.patience)
        if outcome.raised:
            *lines, error = outcome.raised.strip().splitlines()
            who = "len()" if self.plan.loader is None else "the sampler"
            place = next((line.strip() for line in reversed(lines) if line.startswith("  File ")), "")
            raise Mistake(f"{who} of {self.target.text} raised {error}", place)
        if not outcome.told:
            self.complaints += [of_death(outcome.verdict, "", "")] if outcome.verdict else []
            self.unlooked.append("samples: the sampler gave no order within the time")
            return None
        found: Order = outcome.told[0]
        if not found.batches and not self.plan.iterable:
            from holdfast.iterators import emptiness

            self.complaints.append(of_error(emptiness(self.target.dataset), "", ""))
            return None
        if found.whole and found.promised is not None and found.promised != len(found.batches):
            self.symptoms.append(short("loader", found.promised, len(found.batches), "batches"))
        self.plan = self.plan.ordered(found.batches)
        return found

    def _first_look(self) -> FirstLook | None:
        seconds = min(2.0, self.budget.seconds / 10)
        outcome = self._outlived(lambda plan: first_look(plan, seconds), self.budget.left / 2)
        looks = [told for told in outcome.told if isinstance(told, FirstLook)]
        if outcome.raised:
            self.unlooked.append(f"samples: {outcome.raised.strip().splitlines()[-1]}")
        if not looks:
            self.unlooked.append("contents and rates: no sample came")
            return None
        self.complaints += looks[-1].complaints
        self.plan = self.plan.without({one.sample for one in looks[-1].complaints})
        if not looks[-1].first:
            self.unlooked.append("contents and rates: none of the first samples came")
            return None
        return looks[-1]

    def _outlived(self, work: Callable[[Plan], Work], limit: float) -> Outcome:
        """A probe that comes to its end: what ended those before it is left out of the plan."""
        for _ in range(_CASUALTIES):
            outcome = probe.run(work(self.plan), min(limit, self.budget.left), self.budget.patience)
            where = self._where(outcome.sample)
            if outcome.verdict is not None:
                self.complaints.append(of_death(outcome.verdict, outcome.sample, where))
            elif outcome.stall is not None:
                self.complaints.append(of_stall(outcome.stall, outcome.sample, where, self.budget.patience))
            if not outcome.sample or self.plan.iterable:
                break
            self.plan = self.plan.without({outcome.sample})
        return outcome

    def _where(self, sample: str) -> str:
        index = next((index for index in self.plan.indices() if repr(index) == sample), None)
        return "" if index is None else describe(self.target.dataset, index)

    # -- the steps -----------------------------------------------------------------------------

    def _terms(self, look: FirstLook) -> Terms:
        """How much is loaded: what fits into the time for one step, with a few batches for each worker."""
        each = self.budget.left / (len(self.workers) + 2)
        terms = Terms(min(CONTENTS, each * 0.4), min(MEASURE, each * 0.4), self.budget.patience)
        samples = max(2, int(terms.contents / max(look.seconds, 1e-6)))
        size = max(1, min(self.plan.batch_size, samples // (2 * max(1, *self.workers))))
        if size < self.plan.batch_size:
            self.cut = True
            self.unlooked.append(f"batches of {self.plan.batch_size}: in batches of {size} it fits into the time")
        self.plan = self.plan.cut(size, max(2, min(samples, MOST) // size))
        return terms

    def _climb(self, terms: Terms) -> None:
        alone, crews = [0] if 0 in self.workers else list[int](), [n for n in self.workers if n]
        if alone:
            self.progress("0 workers")
            self._take_in(self._outlived(lambda plan: steps(plan, alone, terms), self.budget.left))
        together = [[n] for n in crews] if self.plan.by_threads else [crews]
        for group in filter(None, together):
            self.progress(f"{', '.join(map(str, group))} workers")
            if self.budget.left > 0:
                self._take_in(probe.run(steps(self.plan, group, terms), self.budget.left, self.budget.left))
        if not alone:
            self.unlooked.append("contents: they are compared with those of 0 workers, which was not asked for")
        missing = [str(n) for n in self.workers if n not in {step.workers for step in self.steps}]
        if missing:
            self.unlooked.append(f"the rate with {', '.join(missing)} workers: {self._why_missing()}")

    def _take_in(self, outcome: Outcome) -> None:
        for told in outcome.told:
            match told:
                case Complaint():
                    self.complaints.append(told)
                case Came():
                    self.came[told.workers] = told
                case Step():
                    self.steps.append(told)
                case _:
                    raise AssertionError(f"no step tells of {told!r}")
        if outcome.raised:
            self.unlooked.append(f"a step: {outcome.raised.strip().splitlines()[-1]}")

    def _why_missing(self) -> str:
        return "the time was over" if not self.budget.left else "no batch came"

    # -- what they gave ------------------------------------------------------------------------

    def _compare(self, look: FirstLook, terms: Terms, ordered: Order) -> int:
        if self.plan.iterable:
            found, unlooked = coverage(look, self.came, ordered.promised)
            self.unlooked += unlooked
            mismatches: dict[int, Mismatch] = {}
        else:
            found, mismatches = [], {n: one for n in self.came if n and (one := self._mismatch(self.came[n]))}
        self.progress("causes")
        suspects = Suspects(self.plan, look, self._fresh, lambda plan: self._otherwise(plan, terms))
        self.symptoms += found if look.once else [*found, *judged(mismatches, suspects)]
        if self.plan.iterable:
            crews = (came for came in self.came.values() if came.workers)
            return sum(len(seen.samples) for came in crews for seen in came.batches.values())
        return max((one.of for one in mismatches.values()), default=0)

    def _batch(self) -> tuple[int, int] | None:
        if self.cut or self.plan.loader is None:
            return None
        return max((seen.size for came in self.came.values() for seen in came.batches.values()), default=None)

    def _blame_handles(self) -> None:
        """What raises in workers alone has its cause there; a file that they share is one."""
        alone = {one.kind for one in self.complaints if not one.workers}
        failed = [one for one in self.complaints if one.symptom.check in BAD_SAMPLES and one.kind not in alone]
        if blamed := blamed_on_handles(self.plan, symptoms_of(failed), self.symptoms):
            self.symptoms = blamed
            self.complaints = [one for one in self.complaints if one not in failed]

    def _mismatch(self, came: Came) -> Mismatch | None:
        if 0 not in self.came:
            return None
        spoilt = {one.sample for one in self.complaints if one.workers}
        return mismatch(self.plan, self.came[0], came, spoilt)

    def _fresh(self) -> FirstLook | None:
        outcome = probe.run(first_look(self.plan, 2.0), max(1.0, self.budget.left), self.budget.patience)
        return next((told for told in outcome.told if isinstance(told, FirstLook)), None)

    def _otherwise(self, plan: Plan, terms: Terms) -> Mismatch | None:
        brief = replace(terms, measure=0.0)
        outcome = probe.run(steps(plan, [2], brief), max(2.0, self.budget.left), self.budget.patience)
        came: list[Any] = [told for told in outcome.told if isinstance(told, Came)]
        return self._mismatch(came[0]) if came else None
