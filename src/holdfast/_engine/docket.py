"""Faults on their way into the ledger: written down, put to the user's policy, entered."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast._transport.faults import add_note, unpack_error
from holdfast._transport.messages import Report
from holdfast.errors import TooManyFaults
from holdfast.errors.base import first_of
from holdfast.fault import Fault, plain
from holdfast.ledger import Ledger
from holdfast.policies import Again, Answer, Hold, Leave, Policy, Put, Repeat, Stand
from holdfast.state.moment import Moments, command

ACTIONS: dict[type[Answer], str] = {Again: "tried again", Leave: "skipped", Put: "replaced", Repeat: "replaced"}


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


class Docket:
    """Owned by a judge."""

    def __init__(self, policy: Policy, ledger: Ledger, describe: Callable[[Any], str]) -> None:
        self.policy, self.ledger, self.describe = policy, ledger, describe
        self.epoch = 0
        self.moments: Moments | None = None  # of streams there are none

    def fault(
        self,
        kind: str,
        error: BaseException,
        whose: Whose,
        *,
        batch: int | None,
        index: Any = None,
        item: int | None = None,
        attempts: int = 1,
        before: Sequence[Any] = (),
    ) -> Fault:
        """All that is known; what is done about it is not."""
        return Fault(
            when=time.time(),
            kind=kind,
            epoch=self.epoch,
            batch=batch,
            index=index,
            item=item,
            where=self.describe(index) if index is not None else "",
            error=error,
            traceback="",
            seat=whose.seat,
            life=whose.life,
            pid=whose.pid,
            attempts=attempts,
            action="",
            at=self.at(batch),
            before=tuple(before),
        )

    def at(self, batch: int | None) -> str:
        return str(self.moments.at(batch)) if self.moments is not None and batch is not None else ""

    def again(self, batch: int | None, index: Any, *options: str) -> str:
        """The command by which this sample is seen again; empty when there is none."""
        at = self.at(batch)
        return command(plain(index), at, *options) if at and index is not None else ""

    def settled(self, fault: Fault, answer: Answer) -> Ruling | None:
        """The ruling, where no sample is left out or raised; entered."""
        if isinstance(answer, Again):
            self.note(fault, "tried again")
            return Ruling(after=answer.after)
        if isinstance(answer, Hold):
            self.note(fault, "waited")
            return Ruling(held=True)
        return None

    def reported(
        self,
        report: Report,
        whose: Whose,
        *,
        batch: int,
        index: Any = None,
        among: Any = None,
        attempts: int = 1,
        before: Sequence[Any] = (),
    ) -> Fault:
        """The same of a worker's report. The user's own exception is told where it happened.

        ``among``: the indices of the batch, when it is not known which of them it was.
        """
        error, text = unpack_error(report.error)
        kind = "batch" if report.whole else "exception"
        item = report.item
        fault = self.fault(kind, error, whose, batch=batch, index=index, item=item, attempts=attempts, before=before)
        fault.where, fault.traceback = report.where or fault.where, text
        add_note(error, _note(whose, fault, among, report.detail, self.again(batch, index), text))
        return fault

    def ask(self, fault: Fault) -> Answer:
        """What the policy says. What it raises instead takes the place of the error, as the fault that stands."""
        try:
            return self.policy.answer(fault, self.ledger) or Stand()
        except Exception as error:
            fault.error = _led_by(fault.error, error)
            return Stand()

    def note(self, fault: Fault, action: str) -> None:
        fault.action = action
        self.ledger.note(fault)


def _led_by(first: BaseException, error: Exception) -> Exception:
    """``error`` with its history: the one that the policy was asked about."""
    if isinstance(error, TooManyFaults):
        error.__cause__ = first
        return error
    if isinstance(error, StopIteration):  # it would end the epoch, and silently
        error = RuntimeError("on_error raised StopIteration")
    last: BaseException = error
    while last.__context__ is not None and last.__context__ is not first:
        last = last.__context__
    if last is not first:
        last.__context__ = first
    return error


def _note(whose: Whose, fault: Fault, among: Any, detail: str, again: str, traceback: str) -> str:
    """What is added to the user's own exception."""
    known = fault.index is not None or fault.item is not None
    of_these = f", dataset indices {first_of(among)}" if among and not known else ""
    lines = [
        f"{whose}while it {'loaded' if known else 'made'} {fault.subject}{of_these}",
        *([detail] if detail else []),
        *([f"again: {again}"] if again else []),
    ]
    return "\n".join(lines) + (f"\n\n{traceback}".rstrip() if traceback else "")
