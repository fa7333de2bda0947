"""Who owes whom, in one sentence: from what each process of one trainer does. Values in, a sentence out."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast._engine.causes import Kind

from .advice import DEAF, DIED, LOST, Advice, advice_on
from .member import Doing, Member
from .places import START

_LASTING = (Kind.SOCKET, Kind.LOCK, Kind.OPENMP, Kind.PIPE, Kind.FILE, Kind.CHILD, Kind.UNINTERRUPTIBLE)


class Standing(enum.Enum):
    HEALTHY = "healthy"
    STALLED = "stalled"
    ENDED = "ended"


class Conclusion(NamedTuple):
    """``text`` is a sentence without its full stop; ``culprit`` a pid."""

    standing: Standing
    text: str
    advice: Advice = Advice()
    culprit: int | None = None

    def to_dict(self) -> dict[str, Any]:
        advice = {"advice": list(self.advice.lines), "page": self.advice.page or None}
        return {"standing": self.standing.value, "text": self.text, **advice, "culprit": self.culprit}


class Traces(NamedTuple):
    """What the ended leave behind: ``children`` that the trainer has started and whose end it has not taken note of."""

    children: int = 0
    deaf: bool = False  # to SIGCHLD


def conclude(trainer: Member, hands: Sequence[Member], traces: Traces) -> Conclusion:
    if trainer.doing is Doing.ENDED:
        return Conclusion(Standing.ENDED, "the trainer has ended")
    if trainer.doing is Doing.STOPPED:
        return Conclusion(Standing.STALLED, f"the trainer (pid {trainer.pid}) {trainer.why}", Advice(), trainer.pid)
    if trainer.doing is Doing.AWAITS:
        return _awaiting(trainer, hands, traces)
    halted = [one for one in hands if one.doing is Doing.STOPPED or one.kind is Kind.UNINTERRUPTIBLE]
    if halted:
        return _held_up(f"the trainer {_does(trainer)}", halted[0], "will be missed")
    return _on_its_own(trainer, hands)


def _awaiting(trainer: Member, hands: Sequence[Member], traces: Traces) -> Conclusion:
    waits = f"the trainer waits for {trainer.awaits}{_at(trainer)}"
    if trainer.awaits == START:
        return Conclusion(Standing.HEALTHY, f"workers are about to start: {waits}")
    asked = [one for one in hands if one.pid in trainer.waits_for] or list(hands)
    there = [one for one in asked if one.doing is not Doing.ENDED]
    busy = [one for one in there if one.doing is not Doing.IDLE]
    wanted = _wanted(trainer, busy)
    stuck = [one for one in wanted if not (trainer.has_moved if one.has_moved is None else one.has_moved)]
    if stuck:
        return _held_up(waits, stuck[0], "holds it up")
    if busy:
        text = f"{waits}, and {_count(busy, there)} at work{_rates(busy)}"
        return Conclusion(Standing.HEALTHY, text)
    if trainer.has_moved:
        waiting = f", and {_all(there)} for work" if there else ", and its workers have ended"
        return Conclusion(Standing.HEALTHY, f"the trainer gets what it waits for{waiting}")
    return _nobody(waits, asked, there, traces)


def _held_up(begin: str, culprit: Member, how: str) -> Conclusion:
    text = f"{begin}; {culprit.name} {how}: it {culprit.why}{_at(culprit)}{_piece(culprit)}"
    return Conclusion(Standing.STALLED, text, advice_on(culprit), culprit.pid)


def _wanted(trainer: Member, busy: list[Member]) -> list[Member]:
    """Those that can hold it up: the stopped; then whose turn it is, by torch's own account, or who has the earliest
    batch. All of them where nothing tells.
    """
    stopped = [one for one in busy if one.doing is Doing.STOPPED]
    owed = [one for one in busy if one.seat is not None and one.seat == trainer.owed_by]
    batches = [one.batch for one in busy if one.batch is not None]
    if not owed and batches:
        owed = [one for one in busy if one.batch == min(batches)]
    return [*stopped, *(owed or busy)]


def _nobody(waits: str, asked: Sequence[Member], there: Sequence[Member], traces: Traces) -> Conclusion:
    """Who waits is waited for by nobody: what was to come is lost."""
    ended = ", ".join(one.name for one in asked if one.doing is Doing.ENDED) or _missing(there)
    if not ended and traces.children:
        ended = f"{traces.children} of its processes"
    idle = f"; {_all(there)} for work" if there else ""
    if not ended:
        return Conclusion(Standing.STALLED, f"{waits}, which nobody makes{idle}: a deadlock", LOST)
    ignored = ", because it ignores SIGCHLD" if traces.deaf else ""
    text = f"{waits}, which nobody makes: {ended} ended, and the trainer has not noticed{ignored}{idle}"
    return Conclusion(Standing.STALLED, text, DEAF if traces.deaf else DIED)


def _missing(there: Sequence[Member]) -> str:
    """Numbers of torch's workers that are not there, where all others tell theirs and how many they were."""
    seats, known = {one.seats for one in there}, [one.seat for one in there if one.seat is not None]
    if len(seats) != 1 or len(known) != len(there) or len(set(known)) != len(known):
        return ""
    gone = sorted(set(range(seats.pop() or 0)) - set(known))
    return f"worker{'s' * (len(gone) > 1)} {', '.join(map(str, gone))}" if gone else ""


def _on_its_own(trainer: Member, hands: Sequence[Member]) -> Conclusion:
    busy = [one for one in hands if one.doing not in (Doing.IDLE, Doing.ENDED)]
    there = [one for one in hands if one.doing is not Doing.ENDED]
    others = ""
    if there:
        others = f"; {_count(busy, there)} at work" if busy else f"; {_all(there)} for work"
    if trainer.doing is Doing.WAITS and trainer.kind in _LASTING and not trainer.has_moved:
        text = f"the trainer (pid {trainer.pid}) itself {trainer.why}{_at(trainer)}{others}"
        return Conclusion(Standing.STALLED, text, advice_on(trainer), trainer.pid)
    return Conclusion(Standing.HEALTHY, f"the trainer {_does(trainer)}{others}")


def _does(trainer: Member) -> str:
    if trainer.doing is Doing.COMPUTES:
        return f"computes{_at(trainer)}"
    return f"{trainer.why}{_at(trainer)}"


def _at(member: Member) -> str:
    return f", in {member.place}" if member.place else ""


def _piece(member: Member) -> str:
    """Which batch and sample, and for how long."""
    since = f" for {member.since:.0f} s" if member.since else ""
    return f" ({member.at}{since})" if member.at else ""


def _rates(busy: Sequence[Member]) -> str:
    return f" (CPU {', '.join(f'{one.cpu:.0%}' for one in busy)})" if len(busy) <= 8 else ""


def _count(some: Sequence[Member], there: Sequence[Member]) -> str:
    if len(some) == len(there):
        return "its worker is" if len(some) == 1 else f"all {len(some)} workers are"
    return f"{len(some)} of {len(there)} workers {'is' if len(some) == 1 else 'are'}"


def _all(there: Sequence[Member]) -> str:
    return "its worker waits" if len(there) == 1 else f"all {len(there)} workers wait"
