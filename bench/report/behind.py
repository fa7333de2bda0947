"""Where holdfast is not ahead, from the results: so that none of it can be forgotten."""

from __future__ import annotations

from dataclasses import dataclass

from bench.contest import WELL, FaultResult, Outcome, Result, Target, is_ours
from bench.report import words
from bench.report.files import Results


@dataclass(frozen=True)
class Trailing:
    """A peer that is at least as good in a contest."""

    outcome: Outcome
    peer: Result
    ratio: float | None  # None: of nothing


@dataclass(frozen=True)
class Missed:
    """A target that was not reached. `ratio`: None where it could not be seen, as one of the two has no figure."""

    outcome: Outcome
    contender: str
    target: Target
    ratio: float | None


@dataclass(frozen=True)
class Behind:
    trailing: list[Trailing]
    missed: list[Missed]
    without: list[tuple[Outcome, Result]]  # holdfast, or one of its ways, has no figure
    faults: list[tuple[str, FaultResult]]  # by the table's title: holdfast does not finish

    def lines(self) -> list[str]:
        """For the terminal."""
        found = [f"{one.outcome.contest.name}: {compared(one.outcome, one.peer.contender)}" for one in self.trailing]
        found += [
            f"{one.outcome.contest.name}: the target {one.target} against {one.contender} was not reached: "
            f"{words.ratio(one.ratio)}"
            for one in self.missed
        ]
        found += [f"{one.contest.name}: {result.contender}: {words.why_none(result)}" for one, result in self.without]
        found += [f"faults met by {title}: {one.contender}, {one.fault}: {one.outcome}" for title, one in self.faults]
        return found


def behind(results: Results) -> Behind:
    trailing, missed, without = [], [], []
    for outcome in results.outcomes:
        for peer in outcome.peers:
            level = outcome.figure(peer.contender) == outcome.figure(outcome.counterpart(peer.contender))
            ahead = outcome.ahead(peer.contender)
            if ahead is False or (ahead and level):
                trailing.append(Trailing(outcome, peer, outcome.ratio(peer.contender)))
        for contender, target in outcome.contest.targets.items():
            if outcome.of(contender) is not None and not outcome.reached(contender):
                missed.append(Missed(outcome, contender, target, outcome.ratio(contender)))
        without += [(outcome, one) for one in outcome.results if one.ours and not one.figures]
    faults = [
        (table.title, one)
        for table in results.fates.values()
        for one in table.results
        if is_ours(one.contender) and one.outcome not in WELL
    ]
    return Behind(trailing, missed, without, faults)


def compared(outcome: Outcome, contender: str) -> str:
    """``holdfast has 0.82× the rate of SPDL``."""
    contest, ours = outcome.contest, outcome.counterpart(contender)
    return f"{ours} has {words.ratio(outcome.ratio(contender))} {words.of_what(contest)} of {contender}"
