"""What is to be done about faults: asks the user's policy, amends the batch, keeps the ledger, and counts.

The same judge for processes, threads and loading in the trainer. Batches are numbered within the epoch here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from holdfast._core.refill import Refill
from holdfast._transport.faults import add_note, unpack_error
from holdfast._transport.messages import Answered, Report
from holdfast.errors import AllSamplesBad, StreamLost, TooManyFaults, Unaccounted, WorkerDied, WorkerStalled
from holdfast.fault import Fault
from holdfast.ledger import Ledger
from holdfast.policies import Again, Answer, Hold, Leave, Policy, Put, Repeat, Replace, Skip, Stand
from holdfast.quarantine import Quarantine

from .cases import Case


Ended = WorkerDied | WorkerStalled


@dataclass(frozen=True, slots=True)
class Ruling:
    """``error`` stands in place of the batch; else it is loaded again ``after`` seconds, as `Judge.plan` says.

    ``held``: a stalled worker is left alone.
    """

    error: BaseException | None = None
    after: float = 0.0
    held: bool = False


@dataclass(frozen=True, slots=True)
class Whose:
    """The worker that met a fault; nobody when it is the trainer itself."""

    seat: int | None = None
    life: int | None = None
    pid: int | None = None

    def __str__(self) -> str:
        return "" if self.seat is None else f"in worker {self.seat} (pid {self.pid}), "


class Judge:
    """Owned by a loader's iterator. ``auto_collation``: a batch is a list of indices, not a single one."""

    def __init__(self, policy: Policy, ledger: Ledger, describe: Callable[[Any], str], *, auto_collation: bool) -> None:
        self.policy, self.ledger, self.describe = policy, ledger, describe
        self._lists = auto_collation
        self._epoch, self._refill = 0, Refill(0, None, _nothing, _nothing)
        self._cases: dict[int, Case] = {}
        self._answers: dict[tuple[int | None, int], Answered] = {}  # of streams: what was said about an item before
        self._drawn = self._delivered = self._in_ledger = 0
        for quarantine in (part for part in policy.parts() if isinstance(part, Quarantine)):
            for index, _ in quarantine.known(describe):
                ledger.remember(index)

    def begin(self, epoch: int, refill: Refill) -> None:
        self._epoch, self._refill = epoch, refill
        self._cases.clear()
        self._answers.clear()
        self._drawn = self._delivered = self._in_ledger = 0

    # -- a batch of a map-style data set -------------------------------------------------------

    def draw(self, batch: int, index: Any) -> None:
        """The sampler gave this. Samples that are known to be bad are left out before they are fetched."""
        indices = self._listed(index)
        self._drawn += len(indices)
        if self.ledger.bad and self.policy.tolerant:
            bad = [place for place, each in enumerate(indices) if self.ledger.is_bad(each)]
            if bad:
                self._leave_out(self._case(batch, index), bad)

    def plan(self, batch: int, index: Any) -> Any:
        """What a worker is asked for: the index as it was drawn, or what became of it."""
        case = self._cases.get(batch)
        if case is None:
            return index
        plan = case.plan()
        return plan if self._lists or not isinstance(plan, list) else plan[0]

    def failed(self, batch: int, index: Any, reports: list[Report], whose: Whose) -> Ruling:
        """The worker could not make this batch."""
        case, answers = self._case(batch, index), []
        for report in reports:
            error, text = unpack_error(report.error)
            place, sample = case.at(report.place)
            fault = self._fault("batch" if report.whole else "exception", case, place, sample, error, whose)
            fault.where, fault.traceback = report.where or fault.where, text
            add_note(error, _note(whose, fault, report.detail, text))
            answer = Stand() if report.fatal else self._asked(fault)
            answers.append((fault, place, answer))
        return self._rule(case, answers)

    def killed(self, batch: int, index: Any, error: Ended, position: int | None, whose: Whose) -> Ruling:
        """Loading this batch ended its worker, or does not end."""
        case = self._case(batch, index)
        place, sample = case.at(position)
        kind = "stall" if isinstance(error, WorkerStalled) else "death"
        fault = self._fault(kind, case, place, sample, error, whose)
        answer = self._asked(fault)
        if place is None and not isinstance(answer, Stand | Hold) and not case.careful:
            case.careful = True  # once more, and this time we shall know which sample it is
            self._note(fault, "tried again")
            return Ruling()
        return self._rule(case, [(fault, place, answer)])

    def deliver(self, batch: int, index: Any, *, is_error: bool) -> None:
        """The batch, or its error, is handed to the user."""
        size, case = len(self._listed(index)), self._cases.pop(batch, None)
        self.ledger.seen += size
        if not is_error:
            self._delivered += size - (len(case.gone) if case else 0)

    def finish(self) -> None:
        """The epoch is over: does it add up?"""
        self.ledger.end_epoch(self._epoch, self._drawn)
        if self._drawn != self._delivered + self._in_ledger:
            raise Unaccounted(self._drawn, self._delivered, self._in_ledger)

    # -- streams -------------------------------------------------------------------------------

    def asked(self, batch: int, item: int, report: Report, whose: Whose) -> Answered:
        """An iterable data set raised at this item; a later life that comes by again is told the same."""
        known = self._answers.get((whose.seat, item))
        if known is not None and known.action != "raise":
            return known
        error, text = unpack_error(report.error)
        fault = self._fault("exception", Case(batch, []), None, None, error, whose)
        fault.item, fault.where, fault.traceback = item, report.where, text
        fault.attempts = 1 + sum(each.item == item for each in self.ledger.filter(seat=whose.seat, epoch=self._epoch))
        answer = Stand() if report.fatal else self._asked(fault)
        if type(answer) in _ACTIONS:  # else it comes back as the error of the batch
            self._note(fault, _ACTIONS[type(answer)])
        said = self._answers[whose.seat, item] = _in_short(answer)
        return said

    def stream_failed(self, batch: int, reports: list[Report], whose: Whose) -> BaseException:
        """A batch of a stream that could not be made; what could be asked was asked before."""
        error, text = unpack_error(reports[0].error)
        fault = self._fault("batch" if reports[0].whole else "exception", Case(batch, []), None, None, error, whose)
        fault.where, fault.traceback = reports[0].where, text
        add_note(error, _note(whose, fault, reports[0].detail, text))
        self._note(fault, "raised")
        return error

    def lost_stream(self, batch: int, item: int, error: Ended, whose: Whose) -> Ruling:
        """An item of an iterable data set ended its worker, or does not come: nobody can get beyond it."""
        kind = "stall" if isinstance(error, WorkerStalled) else "death"
        fault = self._fault(kind, Case(batch, []), None, None, error, whose)
        fault.item = item
        fault.attempts = 1 + sum(each.item == item for each in self.ledger.filter(kind=kind, seat=whose.seat))
        answer = self._asked(fault)
        if isinstance(answer, Again):
            self._note(fault, "tried again")
            return Ruling(after=answer.after)
        if isinstance(answer, Hold):
            self._note(fault, "waited")
            return Ruling(held=True)
        if isinstance(answer, Stand):
            self._note(fault, "raised")
            return Ruling(error=fault.error)
        # To leave out a sample is one thing; nobody asked to do without the rest of a stream.
        lost = StreamLost(whose.seat, item, f"it {_END[kind]} whoever loads it")
        lost.__cause__, fault.error = error, lost
        self._note(fault, "raised")
        return Ruling(error=lost)

    # -- what concerns no sample ---------------------------------------------------------------

    def note(
        self, kind: str, action: str, error: BaseException, whose: Whose, batch: int | None = None, index: Any = None
    ) -> None:
        """Enter what happened and needs no decision: a worker that was replaced, a stall that is only reported."""
        fault = self._fault(kind, Case(-1, []), None, index, error, whose)
        fault.batch = batch
        self._note(fault, action)

    # -- small steps ---------------------------------------------------------------------------

    def _asked(self, fault: Fault) -> Answer:
        try:
            return self.policy.answer(fault, self.ledger) or Stand()
        except TooManyFaults as error:
            fault.error, error.__cause__ = error, fault.error
            return Stand()

    def _rule(self, case: Case, answers: list[tuple[Fault, int | None, Answer]]) -> Ruling:
        for fault, place, answer in answers:
            if isinstance(answer, Hold):
                self._note(fault, "waited")
                return Ruling(held=True)
            if isinstance(answer, Stand) or (place is None and not isinstance(answer, Again)):
                return self._raised(case, fault, fault.error)
        after = max((answer.after for _, _, answer in answers if isinstance(answer, Again)), default=0.0)
        for fault, place, answer in answers:
            if place is not None and not isinstance(answer, Again):
                self._in_ledger += place not in case.gone
                case.gone[place] = answer
                self.ledger.remember(fault.index, fault.error)
        try:
            case.amend(self._refill, lambda index: not self.ledger.is_bad(index))
        except LookupError as reason:
            faults = [fault for fault, _, _ in answers]
            return self._raised(case, faults[-1], AllSamplesBad(case.batch, case.indices, str(reason), faults))
        for fault, place, answer in answers:
            fault.instead = None if place is None else case.instead_of(place)
            self._note(fault, _ACTIONS[type(answer)])
        return Ruling(after=after)

    def _raised(self, case: Case, fault: Fault, error: BaseException) -> Ruling:
        fault.lost = tuple(index for place, index in enumerate(case.indices) if place not in case.gone)
        self._in_ledger += len(fault.lost)
        if error is not fault.error:
            error.__cause__, fault.error = fault.error, error
        self._note(fault, "raised")
        return Ruling(error=error)

    def _leave_out(self, case: Case, places: list[int]) -> None:
        for place in places:
            index = case.indices[place]
            why = self.ledger.why(index) or LookupError("known to be bad")
            fault = self._fault("exception", case, place, index, why, Whose())
            case.gone[place] = self._known(fault)
            self._in_ledger += 1
            fault.attempts = 0
            try:
                case.amend(self._refill, lambda other: not self.ledger.is_bad(other))
            except LookupError:
                case.gone.pop(place)  # then it has to be tried
                self._in_ledger -= 1
                continue
            fault.instead = case.instead_of(place)
            self._note(fault, "known bad")

    def _known(self, fault: Fault) -> Answer:
        for part in self.policy.parts():
            if isinstance(part, Skip):
                return Leave(part.refill)
            if isinstance(part, Replace):
                return part.answer(fault, self.ledger) or Repeat()
        return Leave()

    def _fault(self, kind: str, case: Case, place: int | None, index: Any, error: BaseException, whose: Whose) -> Fault:
        return Fault(
            when=time.time(),
            kind=kind,
            epoch=self._epoch,
            batch=case.batch,
            index=index,
            item=None,
            where=self.describe(index) if index is not None else "",
            error=error,
            traceback="",
            seat=whose.seat,
            life=whose.life,
            pid=whose.pid,
            attempts=case.attempt(index),
            action="",
        )

    def _note(self, fault: Fault, action: str) -> None:
        fault.action = action
        self.ledger.note(fault)

    def _case(self, batch: int, index: Any) -> Case:
        case = self._cases.get(batch)
        if case is None:
            case = self._cases[batch] = Case(batch, list(self._listed(index)))
        return case

    def _listed(self, index: Any) -> Any:
        return index if self._lists and isinstance(index, list | tuple) else [index]


_END = {"death": "ends", "stall": "holds up"}
_ACTIONS: dict[type[Answer], str] = {Again: "tried again", Leave: "skipped", Put: "replaced", Repeat: "replaced"}


def _in_short(answer: Answer) -> Answered:
    match answer:
        case Again():
            return Answered("again", answer.after, None)
        case Leave() | Repeat():
            return Answered("skip", 0.0, None)
        case Put():
            return Answered("put", 0.0, answer.value)
        case _:
            return Answered("raise", 0.0, None)


def _note(whose: Whose, fault: Fault, detail: str, traceback: str) -> str:
    """What is added to the user's own exception."""
    verb = "loaded" if fault.index is not None or fault.item is not None else "made"
    lines = [f"{whose}while it {verb} {fault.subject}", *([detail] if detail else [])]
    return "\n".join(lines) + (f"\n\n{traceback}".rstrip() if traceback else "")


def _nothing(batch: int, count: int) -> Iterable[Any]:
    return ()
