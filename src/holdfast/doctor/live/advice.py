"""What to do about a process that stands still: lines of code or commands, and the page that says more."""

from __future__ import annotations

from typing import NamedTuple

from holdfast._engine.causes import Kind

from .job import Role
from .member import Member


class Advice(NamedTuple):
    lines: tuple[str, ...] = ()
    page: str = ""  # for ``holdfast explain``


_WAYS = {
    Kind.SOCKET: "give the connection a limit: sock.settimeout(30), requests.get(url, timeout=30)",
    Kind.LOCK: "make the lock where it is used: holdfast.per_worker(threading.Lock)",
    Kind.OPENMP: "start workers without fork: holdfast.DataLoader(...), or multiprocessing_context='spawn'",
    Kind.LOOP: "run the sample alone: holdfast replay TARGET INDEX",
    Kind.SLEEP: "a retry without a limit sleeps like this: give it a number of attempts",
    Kind.CHILD: "give the program a limit: subprocess.run(..., timeout=30)",
    Kind.PIPE: "whoever holds the other end owes an answer: subprocess.run(..., timeout=30)",
    Kind.UNINTERRUPTIBLE: "the storage does not answer: dmesg | tail, findmnt",
}
_OF_FORKS = (Kind.LOCK, Kind.OPENMP)
LOST = Advice(("read its stderr: torch prints there that a batch could not be pickled",), "F26")
DIED = Advice(("holdfast.DataLoader(...) replaces a worker that ends",), "F28")
DEAF = Advice(("remove signal.signal(signal.SIGCHLD, signal.SIG_IGN)",), "F50")


def advice_on(culprit: Member) -> Advice:
    if culprit.kind is Kind.STOPPED:
        return Advice()  # the sentence says it already
    way = _WAYS.get(culprit.kind, "")
    match culprit.role:
        case Role.WORKER | Role.TORCH_WORKER if not culprit.is_pools:
            way_on, page = "holdfast.DataLoader(..., stall_timeout=60) reports such a sample, and goes on", "F31"
        case Role.WORKER | Role.PROCESS:
            way_on, page = "holdfast.Pool(..., task_timeout=60) ends such a call, and goes on", "F69"
        case _:
            way_on, page = "", ""
    return Advice(tuple(filter(None, [way, way_on])), "F01" if page and culprit.kind in _OF_FORKS else page)
