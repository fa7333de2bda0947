"""Which rank failed first, and the error that says so: ours and torch's in one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

from holdfast import errors
from holdfast._engine.autopsy import examine
from holdfast._system.memory_events import OomWatch
from holdfast._transport.faults import add_note, unpack_error
from holdfast._transport.logbook import Phase

from .rank import Rank
from .telling import LEAVING, RUNNING, Ending

_OURS = os.path.join("holdfast", "ranks", "")  # from here outwards a stack is ours and tells a user nothing


class RankRaised(errors.RankRaised, ProcessRaisedException):
    """As it is raised: for ``except torch.multiprocessing.ProcessRaisedException`` as well."""

    __reduce__ = BaseException.__reduce__  # torch's knows torch's arguments only

    def __init__(self, *facts: Any) -> None:
        super().__init__(*facts)
        self.msg = str(self)


class RankExited(errors.RankExited, ProcessExitedException):
    """As it is raised: for ``except torch.multiprocessing.ProcessExitedException`` as well."""

    __reduce__ = BaseException.__reduce__

    def __init__(self, *facts: Any) -> None:
        super().__init__(*facts)
        self.msg = str(self)


def failure(failed: Sequence[Rank], function: str, watch: OomWatch) -> Exception:
    """The error of those that failed, which is that of the first of them. All ranks have ended."""
    first, *later = sorted(failed, key=lambda rank: (rank.failed_at() or 0.0, rank.number))
    others = [f"rank {rank.number} {_in_short(rank)}{_later(first, rank)}" for rank in later]
    if first.told is not None and first.told.ending is Ending.RAISED:
        return _raised(first, others)
    return _exited(first, function, watch, others)


def _raised(rank: Rank, others: list[str]) -> Exception:
    error, text = unpack_error(rank.packed)
    pid = rank.process.pid
    failed = RankRaised(rank.number, pid, _one_line(error), text, others)
    add_note(error, f"raised in rank {rank.number} (pid {pid})")
    failed.__cause__ = error
    return failed


def _exited(rank: Rank, function: str, watch: OomWatch, others: list[str]) -> Exception:
    phase = rank.berth.logbook.read().phase
    verdict = examine(rank.berth, watch)
    users = takewhile(lambda line: _OURS not in line, verdict.stack.splitlines())
    verdict = replace(verdict, stack="\n".join(users), doing=_DOING.get(phase, "").format(function))
    when = f"after {function} had returned" if phase is LEAVING else f"before {function} had returned"
    status = -1 if verdict.status is None else verdict.status
    return RankExited(rank.number, rank.process.pid, status, verdict.signal, verdict, when, others)


_DOING = {
    Phase.STARTING: "starting",
    Phase.UNPACKING: "unpacking {} and its arguments",
    RUNNING: "running {}",
    LEAVING: "leaving",
}


def _in_short(rank: Rank) -> str:
    if rank.told is not None and rank.told.ending is Ending.RAISED:
        return f"raised {_one_line(unpack_error(rank.packed)[0])}"
    return str(errors.Verdict(rank.process.exitcode))


def _later(first: Rank, rank: Rank) -> str:
    if not first.timed or not rank.timed:
        return ""
    return f", {(rank.failed_at() or 0.0) - (first.failed_at() or 0.0):.2f} s later"


def _one_line(error: BaseException) -> str:
    if isinstance(error, errors.RemoteError):
        kind, text = error.kind, error.text
    else:
        kind, text = type(error).__name__, str(error)
    return f"{kind}: {text.partition(chr(10))[0]}" if text else kind
