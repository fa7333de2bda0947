"""What is to be done about faults: asks the user's policy, amends the batch, keeps the ledger, and counts.

The same judge for processes, threads and loading in the trainer. Batches are numbered within the epoch here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast._core.refill import Refill
from holdfast._transport.faults import add_note, unpack_error
from holdfast._transport.messages import Plan, Report
from holdfast._worker.debugged import up_to_debug
from holdfast._worker.fetch import listed
from holdfast.errors import AllSamplesBad, Unaccounted, WorkerDied
from holdfast.fault import LEFT_OUT, Fault
from holdfast.ledger import Ledger, hashable
from holdfast.policies import Again, Answer, Hold, Policy, Put, Stand
from holdfast.quarantine import Quarantine
from holdfast.state.moment import Moments

from .cases import Case
from .docket import ACTIONS, Docket, Ruling, Whose
from .imports import explain_import
from .streams import Ended, Streams

__all__ = ["Judge", "Ruling", "Whose"]

REMADE = 8  # times that a batch is put together anew, with other samples, before it is not the samples' fault


class Met(NamedTuple):
    """A fault, the place of its sample in the batch (None: not known, or all of it), and the answer if it is clear."""

    fault: Fault
    place: int | None
    answer: Answer | None


class Judge:
    """Owned by a loader's iterator. ``auto_collation``: a batch is a list of indices, not a single one."""

    def __init__(self, policy: Policy, ledger: Ledger, describe: Callable[[Any], str], *, auto_collation: bool) -> None:
        self.policy, self.ledger, self.describe = policy, ledger, describe
        self._docket = Docket(policy, ledger, describe)
        self.streams = Streams(self._docket)
        self._lists, self._counts, self._tolerant = auto_collation, bool(up_to_debug(policy)), policy.tolerant
        self._refill = Refill(0, None, _nothing, _nothing)
        self._cases: dict[int, Case] = {}
        self._drawn = self._delivered = self._in_ledger = 0
        for quarantine in (part for part in policy.parts() if isinstance(part, Quarantine)):
            for index, where in quarantine.known(describe):
                ledger.remember(index, where=where)

    def begin(self, epoch: int, refill: Refill, moments: Moments | None = None) -> None:
        self._docket.epoch, self._docket.moments, self._refill = epoch, moments, refill
        self._cases.clear()
        self.streams.begin()
        self._drawn = self._delivered = self._in_ledger = 0

    # -- a batch -------------------------------------------------------------------------------

    def draw(self, batch: int, index: Any) -> None:
        """The sampler gave this. Samples that are known to be bad are left out before they are fetched."""
        indices = self._listed(index)
        self._drawn += len(indices)
        if self._tolerant and self.ledger.bad:
            for place, each in enumerate(indices):
                if self.ledger.is_bad(each):
                    self._leave_out(self._case(batch, index), place)

    def plan(self, batch: int, index: Any) -> Any:
        """What a worker is asked for: the index as it was drawn, or what became of it."""
        case = self._cases.get(batch)
        if case is None:
            return index
        plan = case.plan()
        if self._counts:  # whoever loads it has to know when to debug
            plan = plan if isinstance(plan, Plan) else Plan(plan, {}, False)
            return plan._replace(attempt=1 + max(case.tries.values(), default=0))
        return plan if self._lists or not isinstance(plan, list) else plan[0]

    def failed(self, batch: int, index: Any, reports: list[Report], whose: Whose) -> Ruling:
        """The worker could not make this batch."""
        case = self._case(batch, index)
        case.remade += reports[0].whole
        return self._rule(case, [self._met(case, report, whose) for report in reports])

    def killed(self, batch: int, index: Any, error: Ended, position: int | None, whose: Whose) -> Ruling:
        """Loading this batch ended its worker, or does not end."""
        case = self._case(batch, index)
        place, sample = case.at(position)
        kind, tries = "stall", self.tried(batch, position) + 1
        if isinstance(error, WorkerDied):
            kind, tries = "death", error.attempts
        case.tries[hashable(sample)] = tries
        before = case.before(position)
        fault = self._docket.fault(kind, error, whose, batch=batch, index=sample, attempts=tries, before=before)
        if again := self._docket.again(batch, sample):
            add_note(error, f"again: {again}")
        answer = self._docket.ask(fault)
        if place is None and not case.careful and not isinstance(answer, Stand | Hold):
            case.careful = True  # once more, and this time we shall know which sample it is
            self._docket.note(fault, "tried again")
            return Ruling()
        return self._rule(case, [Met(fault, place, answer)])

    def stalled_start(self, error: BaseException, whose: Whose) -> Ruling:
        """A worker does not get ready. There is no sample to leave out: it is tried again, waited for, or raised."""
        before = self.ledger.filter(kind="stall", seat=whose.seat, epoch=self._docket.epoch)
        tries = 1 + sum(fault.batch is None for fault in before)
        fault = self._docket.fault("stall", error, whose, batch=None, attempts=tries)
        ruling = self._docket.settled(fault, self._docket.ask(fault))
        if ruling is None:
            self._docket.note(fault, "raised")
        return ruling or Ruling(error=error)

    def tried(self, batch: int, position: int | None) -> int:
        """How often this sample, or all of the batch, has been tried and ruled upon."""
        case = self._cases.get(batch)
        return case.tries[hashable(case.at(position)[1])] if case else 0

    def deliver(self, batch: int, index: Any, *, is_error: bool) -> None:
        """The batch, or its error, is handed to the user."""
        size = len(self._listed(index))
        self.ledger.seen += size
        case = self._cases.pop(batch, None) if self._cases else None
        if not is_error:
            self._delivered += size if case is None else size - len(case.gone)

    def again(self, batch: int | None, index: Any) -> str:
        """The command by which one stops at this sample; empty when there is none."""
        return self._docket.again(batch, index, "--pdb")

    def left_out_ahead(self) -> int:
        """How many samples the ledger has as left out of batches that are not delivered."""
        return sum(fault.action in LEFT_OUT for case in self._cases.values() for fault in case.met)

    def abandon(self, batch: int, index: Any, error: BaseException) -> None:
        """What ends a worker, or the user's Ctrl-C, came out of loading this batch in the trainer itself."""
        case = self._case(batch, index)
        self._raised(case, self._docket.fault("exception", error, Whose(), batch=batch), error)

    def finish(self) -> None:
        """The epoch is over: does it add up?"""
        self.ledger.end_epoch(self._docket.epoch, self._drawn)
        if self._drawn != self._delivered + self._in_ledger:
            raise Unaccounted(self._drawn, self._delivered, self._in_ledger)

    def note(
        self, kind: str, action: str, error: BaseException, whose: Whose, batch: int | None = None, index: Any = None
    ) -> None:
        """Enter what happened and needs no decision: a worker that was replaced, a stall that is only reported."""
        self._docket.note(self._docket.fault(kind, error, whose, batch=batch, index=index), action)

    def unready(self, packed: bytes | BaseException, whose: Whose) -> BaseException:
        """A worker could not get as far as its first batch: what to raise."""
        error, traceback = unpack_error(packed)
        why = explain_import(error)
        add_note(error, f"{whose}before its first batch{why and chr(10)}{why}\n\n{traceback}".rstrip())
        self.note("exception", "raised", error, whose)
        return error

    # -- decisions -----------------------------------------------------------------------------

    def _met(self, case: Case, report: Report, whose: Whose) -> Met:
        place, sample = case.at(report.place)
        tries = case.attempt(sample)
        batch, among, before = case.batch, case.indices, case.before(report.place)
        fault = self._docket.reported(
            report, whose, batch=batch, index=sample, among=among, attempts=tries, before=before
        )
        # A value in its place that fails as well, or samples that fail with whatever others: nothing is gained by more.
        is_put = place is not None and isinstance(case.gone.get(place), Put)
        helpless = report.whole and (is_put or case.remade > REMADE)
        return Met(fault, place, Stand() if report.fatal or helpless else None)

    def _rule(self, case: Case, met: list[Met]) -> Ruling:
        """One by one, as each counts towards the limit of the next."""
        after = 0.0
        for number, (fault, place, given) in enumerate(met):
            answer = given or self._docket.ask(fault)
            error: BaseException | None = fault.error
            if isinstance(answer, Hold):
                self._docket.note(fault, "waited")
                return Ruling(held=True)
            if isinstance(answer, Again):
                self._docket.note(fault, "tried again")
                after, error = max(after, answer.after), None
            elif place is not None and not isinstance(answer, Stand):
                error = self._put_aside(case, place, fault, answer)
            if error is not None:
                for other in met[number + 1 :]:
                    self._docket.note(other.fault, "raised")  # with this one
                return self._raised(case, fault, error)
        for fault, place, _ in met:  # one that failed as well may have been chosen for an earlier one
            fault.instead = None if place is None else case.instead_of(place)
        return Ruling(after=after)

    def _put_aside(self, case: Case, place: int, fault: Fault, answer: Answer) -> AllSamplesBad | None:
        """Make the batch without this sample; the error when that cannot be."""
        action, counted = ACTIONS[type(answer)], place in case.gone
        self.ledger.remember(fault.index, where=fault.where, answer=answer)
        try:
            case.amend(place, answer, self._refill, self._fits)
        except LookupError as reason:
            return AllSamplesBad(case.batch, case.indices, str(reason), [*case.met, replace(fault, action=action)])
        self._in_ledger += not counted
        fault.instead = case.instead_of(place)
        case.met.append(fault)
        self._docket.note(fault, action)
        return None

    def _raised(self, case: Case, fault: Fault, error: BaseException) -> Ruling:
        fault.lost = case.left()
        self._in_ledger += len(fault.lost)
        if error is not fault.error:
            error.__cause__, fault.error = fault.error, error
        self._docket.note(fault, "raised")
        return Ruling(error=error)

    def _leave_out(self, case: Case, place: int) -> None:
        """It is known to be bad. When nothing can take its place, it has to be tried again."""
        index = case.indices[place]
        known = self.ledger.known(index)
        try:
            case.amend(place, known.answer or self.policy.usual(), self._refill, self._fits)
        except LookupError:
            return
        self._in_ledger += 1
        error = known.error or LookupError("known to be bad")
        fault = self._docket.fault("exception", error, Whose(), batch=case.batch, index=index, attempts=0)
        fault.where, fault.instead = known.where or fault.where, case.instead_of(place)
        case.met.append(fault)
        self._docket.note(fault, "known bad")

    def _fits(self, index: Any) -> bool:
        return not self.ledger.is_bad(index)

    def _case(self, batch: int, index: Any) -> Case:
        case = self._cases.get(batch)
        if case is None:
            case = self._cases[batch] = Case(batch, list(self._listed(index)))
        return case

    def _listed(self, index: Any) -> Any:
        if not self._lists:
            return [index]
        return index if type(index) is list else listed(index)


def _nothing(batch: int, count: int) -> Iterable[Any]:
    return ()
