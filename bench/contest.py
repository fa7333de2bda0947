"""What is measured: contests, the bounds that holdfast has to reach in them, and what came out.

Nothing here imports torch or a peer: the driver, which reads these, stays out of what it measures.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Better = Literal["more", "less"]
FAR = 2.0  # times apart; then another round would change nothing that is said


@dataclass(frozen=True)
class Target:
    """A bound on holdfast's figure divided by another contender's."""

    bound: float
    at_most: bool = False

    def met_by(self, ratio: float) -> bool:
        return ratio <= self.bound if self.at_most else ratio >= self.bound

    def __str__(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {self.bound:g}"


@dataclass(frozen=True)
class Contest:
    """One thing that several contenders do, in turns, on the same data.

    `start` names, as ``module:function``, what a seat calls with `Turn`; it returns a `Running`, or raises `Cannot`.
    A go takes some seconds; the figure is `unit` per second (``better="more"``) or what the go itself returns.
    """

    name: str
    title: str
    unit: str
    start: str
    contenders: tuple[str, ...]
    better: Better = "more"
    settings: dict[str, Any] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)  # by contender: of holdfast's figure over that one's
    limits: tuple[str, ...] = ()  # contenders that are no peers: what the machine allows, see bench/limits.py
    champion: str = "holdfast"
    beside: dict[str, str] = field(default_factory=dict)  # by contender: another of our ways, which is used as it is
    rounds: int = 3
    curve: str = ""  # the curve that this is a point of, and ...
    at: float = 0.0  # ... where on its axis
    quick: bool = False  # whether it is held in a quick run too
    fresh: bool = False  # in new processes: what earlier contests have left in the old ones would count


@dataclass(frozen=True)
class Turn:
    """What a seat is asked to start: one contender in one contest."""

    contender: str
    settings: dict[str, Any]
    quick: bool
    directory: str  # for files that all contenders read; whoever comes first writes them

    def scaled(self, full: int, quick: int) -> int:
        return quick if self.quick else full


def is_ours(contender: str) -> bool:
    """holdfast, and its other ways of doing the same, are no peers of it."""
    return contender.startswith("holdfast")


class Cannot(Exception):
    """A contender cannot do this work. The message is the reason, for the table: one short sentence."""


@dataclass
class Result:
    """What one contender did. One of `figures`, `cannot` (the reason) and `failed` (how it ended) is given."""

    contender: str
    figures: list[float] = field(default_factory=list)
    cannot: str = ""
    failed: str = ""
    note: str = ""

    def best(self, better: Better, rounds: int | None = None) -> float | None:
        """Of the first so many rounds, or of all."""
        figures = self.figures[:rounds]
        if not figures:
            return None
        return max(figures) if better == "more" else min(figures)

    @property
    def spread(self) -> float | None:
        """How far the rounds lie apart, over their mean; None where there are not two."""
        if len(self.figures) < 2 or not sum(self.figures):
            return None
        return (max(self.figures) - min(self.figures)) * len(self.figures) / sum(self.figures)

    @property
    def ours(self) -> bool:
        return is_ours(self.contender)

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value}


@dataclass
class Outcome:
    """A contest with its results, in the order of the contenders."""

    contest: Contest
    results: list[Result]

    def of(self, contender: str) -> Result | None:
        return next((result for result in self.results if result.contender == contender), None)

    def figure(self, contender: str) -> float | None:
        result = self.of(contender)
        return None if result is None else result.best(self.contest.better)

    def counterpart(self, contender: str) -> str:
        """Which of our ways it is compared with: the champion, if not one that is used as this contender is."""
        like = self.contest.beside.get(contender, "")
        return like if self.figure(like) is not None else self.contest.champion

    def ratio(self, contender: str) -> float | None:
        """Our best over the contender's best: more than one is faster, or, for seconds and bytes, worse. Of the rounds
        that both took part in: the best of six is more than the best of two, of the same loader."""
        ours, theirs = self.of(self.counterpart(contender)), self.of(contender)
        if ours is None or theirs is None:
            return None
        one, other = ours.best(self.contest.better, len(theirs.figures)), theirs.best(self.contest.better)
        return one / other if one is not None and other else None

    def round_by_round(self, contender: str) -> float | None:
        """The median of the same ratio within each round, in which both met about the same machine."""
        ours, theirs = self.of(self.counterpart(contender)), self.of(contender)
        pairs = zip(ours.figures, theirs.figures) if ours and theirs else ()
        ratios = [one / other for one, other in pairs if other]
        return statistics.median(ratios) if ratios else None

    def ahead(self, contender: str) -> bool | None:
        """Whether we are at least as good; None where one of the two has no figure."""
        ours, theirs = self.figure(self.counterpart(contender)), self.figure(contender)
        if ours is None or theirs is None:
            return None
        return ours >= theirs if self.contest.better == "more" else ours <= theirs

    def reached(self, contender: str) -> bool | None:
        """Whether the bound holds; None where there is none, or no figure."""
        ratio, target = self.ratio(contender), self.contest.targets.get(contender)
        return None if target is None or ratio is None else target.met_by(ratio)

    def is_open(self, contender: str) -> bool:
        """Whether another round could tell more: it is our own, a target is about it, or it is not far from us."""
        ratio = self.ratio(contender)
        return is_ours(contender) or contender in self.contest.targets or ratio is None or 1 / FAR < ratio < FAR

    @property
    def peers(self) -> list[Result]:
        """Those that are neither holdfast nor a physical limit."""
        return [one for one in self.results if not one.ours and one.contender not in self.contest.limits]

    @property
    def failures(self) -> list[str]:
        """Where holdfast itself did not get through, one line each."""
        failed = [one for one in self.results if one.ours and one.failed]
        return [f"{self.contest.name}: {one.contender}: {one.failed}" for one in failed]

    def as_dict(self) -> dict[str, Any]:
        contest = self.contest
        facts = {name: getattr(contest, name) for name in ("name", "title", "unit", "better", "champion", "settings")}
        if contest.curve:
            facts |= {"curve": contest.curve, "at": contest.at}
        if contest.limits:
            facts["limits"] = list(contest.limits)
        if contest.beside:
            facts["beside"] = contest.beside
        targets = {name: {"bound": one.bound, "at_most": one.at_most} for name, one in contest.targets.items()}
        return {**facts, "targets": targets, "results": [result.as_dict() for result in self.results]}


def outcome_from(facts: dict[str, Any]) -> Outcome:
    """The inverse of `Outcome.as_dict`, for reports from files."""
    named = {name: facts[name] for name in ("name", "title", "unit", "better", "champion", "settings")}
    targets = {name: Target(**bound) for name, bound in facts["targets"].items()}
    results = [Result(**result) for result in facts["results"]]
    contenders = tuple(result.contender for result in results)
    where = {"curve": facts.get("curve", ""), "at": facts.get("at", 0.0), "limits": tuple(facts.get("limits", ()))}
    beside = facts.get("beside", {})
    return Outcome(Contest(**named, **where, start="", contenders=contenders, targets=targets, beside=beside), results)


@dataclass(frozen=True)
class FaultResult:
    """What became of a contender that met a fault: a word for it, after how many seconds, and what a user sees."""

    contender: str
    fault: str
    outcome: str
    seconds: float | None = None
    text: str = ""


@dataclass
class FaultTable:
    """All that met the same faults. `faults` and `outcomes` say what their short names mean."""

    title: str
    faults: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    results: list[FaultResult] = field(default_factory=list)

    def outcome(self, contender: str, fault: str) -> FaultResult | None:
        return next((one for one in self.results if (one.contender, one.fault) == (contender, fault)), None)

    @property
    def failures(self) -> list[str]:
        """Where holdfast's processes did what they must never do; a thread that is killed is the program's end. An
        error that says what happened is not among these."""
        bad = [one for one in self.results if one.contender in OF_PROCESSES and one.outcome in MUST_NOT]
        return [f"{self.title}: {one.contender}: {one.fault}: {one.outcome} {one.text}".rstrip() for one in bad]


WELL = ("finishes", "clean")  # as if nothing had happened
OF_PROCESSES = ("holdfast", "holdfast Pool", "holdfast Executor")
MUST_NOT = ("hangs", "loss", "ends", "leaves")
