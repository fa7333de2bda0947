"""What becomes of a call that failed: tried again, replaced, or an error; and the line in the ledger."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from itertools import dropwhile
from multiprocessing.pool import RemoteTraceback  # type: ignore[attr-defined]  # its stubs leave it out
from typing import Any

from holdfast._engine.docket import Whose
from holdfast._transport.faults import add_note, unpack_error
from holdfast._worker.calling import Overdue
from holdfast.errors import TaskDied, TaskTimeout, Verdict
from holdfast.fault import Fault
from holdfast.ledger import Ledger
from holdfast.policies import Again, Put, Raise, Retry, is_programming_error

from .calls import Call


class TaskFault(Fault):
    """A line of a pool's ledger: ``index`` is the number of the call, ``where`` says what it was."""

    __slots__ = ()

    @property
    def subject(self) -> str:
        return f"task {self.index}: {self.where}" if self.index is not None else "between tasks"


@dataclass(frozen=True, slots=True)
class Ruling:
    """Tried again ``after`` seconds; or ``error``, or if that is None ``value``, is the result."""

    after: float | None = None
    error: BaseException | None = None
    value: Any = None

    def enter(self, item: int, errors: dict[int, BaseException | None], instead: dict[int, Any]) -> None:
        """Into the results: the error, or None where there is no result yet; or the value."""
        if self.error is not None or self.after is not None:
            errors[item] = self.error
        else:
            instead[item] = self.value


class TaskJudge:
    """Owned by a pool. ``retries``: how many times a call is tried again after it ended its worker, and how many times
    after it raised; or a policy."""

    def __init__(self, retries: Any, ledger: Ledger) -> None:
        if isinstance(retries, bool) or not (isinstance(retries, int) or hasattr(retries, "answer")):
            raise TypeError(f"retries should be a number or a policy such as Retry(3, on=OSError), but got {retries!r}")
        self.policy = (Retry(retries) if retries else Raise()) if isinstance(retries, int) else retries
        self.may_retry = self.policy.tolerant
        self.ledger = ledger

    def raised(self, call: Call, item: int, packed: bytes, whose: Whose) -> Ruling:
        """The function raised, or its arguments or its result could not travel."""
        error, text = unpack_error(packed)
        if isinstance(error, Overdue):
            return self._late(call, item, _stack_of(text), whose, ended=False)
        add_note(error, f"{whose}in {call.describe(item)}")
        if error.__cause__ is None and text:  # a cause that came along has its place in the text
            error.__cause__ = RemoteTraceback(f'\n"""\n{text}"""')
        return self._rule(call, item, "exception", error, whose, call.attempt(item, "raised"), text)

    def ended(self, call: Call, item: int, verdict: Verdict, whose: Whose) -> Ruling:
        """The worker died in it."""
        attempts = call.attempt(item, "died")
        error = TaskDied(whose.seat, whose.pid, verdict, call.describe(item), attempts)
        ruling = self._rule(call, item, "death", error, whose, attempts)
        return Ruling(after=0.0) if ruling.after is not None else ruling

    def stuck(self, call: Call, item: int, stack: str, whose: Whose) -> Ruling:
        """It did not stop when it was told to."""
        return self._late(call, item, stack, whose, ended=True)

    def restarted(self, verdict: Verdict, whose: Whose) -> None:
        """A worker died that had nothing to do."""
        error = TaskDied(whose.seat, whose.pid, verdict, "", 1)
        fault = self._fault("death", error, whose, None, "", 1)
        fault.action = "restarted"
        self.ledger.note(fault)

    def _late(self, call: Call, item: int, stack: str, whose: Whose, *, ended: bool) -> Ruling:
        error = TaskTimeout(call.describe(item), call.timeout, stack, ended)
        return self._rule(call, item, "stall", error, whose, call.attempt(item, "raised"))

    def _rule(
        self,
        call: Call,
        item: int,
        kind: str,
        error: BaseException,
        whose: Whose,
        attempts: int,
        traceback: str = "",
    ) -> Ruling:
        fault = self._fault(kind, error, whose, call.base + item, call.describe(item), attempts)
        fault.traceback = traceback
        ruling = self._asked(fault, error) if call.retried else Ruling(error=error)
        fault.action = "tried again" if ruling.after is not None else "raised" if ruling.error else "replaced"
        self.ledger.note(fault)
        return ruling

    def _asked(self, fault: Fault, error: BaseException) -> Ruling:
        if is_programming_error(error):
            return Ruling(error=error)
        try:
            answer = self.policy.answer(fault, self.ledger)
        except Exception as failure:
            failure.__context__ = error
            return Ruling(error=failure)
        if isinstance(answer, Again):
            return Ruling(after=answer.after)
        return Ruling(value=answer.value) if isinstance(answer, Put) else Ruling(error=error)

    def _fault(
        self, kind: str, error: BaseException, whose: Whose, index: int | None, where: str, attempts: int
    ) -> TaskFault:
        return TaskFault(
            when=time.time(),
            kind=kind,
            epoch=0,
            batch=None,
            index=index,
            item=None,
            where=where,
            error=error,
            traceback="",
            seat=whose.seat,
            life=whose.life,
            pid=whose.pid,
            attempts=attempts,
            action="",
        )


def _stack_of(text: str) -> str:
    """Of a traceback's text, the calls, innermost first."""
    lines = [line.strip() for line in text.splitlines() if line.lstrip().startswith('File "')]
    innermost_first = dropwhile(_is_ours, reversed(lines))
    return "\n".join(line.replace(", in ", " in ") for line in innermost_first)


def _is_ours(line: str) -> bool:
    return any(os.path.join("holdfast", room, "") in line for room in ("_worker", "_system"))
