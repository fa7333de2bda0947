"""Why a worker is silent: a ladder of questions, from the cheap to the dear, each with a limit in time.

What the kernel says costs nothing but a pause of 0.15 s; a signal has the worker write its own Python stack, also from
inside C code; py-spy, where it is installed, reads the stack of those that a signal does not reach. Any process may be
examined, not only our own.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from dataclasses import dataclass

from holdfast._system import proc, stacks
from holdfast._system.proc import Look
from holdfast._system.stacks import Stack, Unseen

from .causes import Cause, Kind, at_once, between

PAUSE = 0.15  # seconds between two looks: enough to tell who runs from who waits
_DEAF = (Kind.STOPPED, Kind.UNINTERRUPTIBLE)
_LIBRARY = re.compile(
    r'File "(<frozen|[^"]*[/\\]lib[/\\]python3|[^"]*[/\\]site-packages[/\\]|[^"]*[/\\]holdfast[/\\]_)'
)


@dataclass(frozen=True, slots=True)
class Stall:
    """What a silent worker is doing, as far as it can be seen."""

    kind: Kind
    why: str  # continues a sentence that begins with the worker
    stack: tuple[str, ...]  # innermost call first, like ``File "x.py", line 3 in f``; without our own calls
    others: tuple[Stack, ...]  # of its other threads, when they were asked for
    seen_by: tuple[str, ...]
    unseen: tuple[str, ...]  # what could not be seen, and why

    @property
    def line(self) -> str:
        """The innermost call that is neither Python's nor a library's; empty without a stack."""
        yours = (line for line in self.stack if not _LIBRARY.match(line))
        return next(yours, next(iter(self.stack), ""))


def examine(pid: int, *, threads: bool = False) -> Stall:
    """What a process waits for: about 0.2 s, and at most 2.6. ``threads``: also where its other threads are."""
    cause, look = _cause(pid)
    if cause.kind is Kind.GONE:
        return Stall(cause.kind, cause.why, (), (), ("/proc",), ())
    found, seen_by, unseen = _stacks(pid, cause.kind, threads)
    main, *others = found or [Stack("", ())]
    seen = (*(["/proc"] if look.state else []), *seen_by)
    return Stall(cause.kind, cause.why, main.lines, tuple(others if threads else ()), seen, (*look.denied, *unseen))


def examine_thread(ident: int) -> Stall:
    """The same for a thread of this process, by its ``threading.Thread.ident``."""
    native = next((thread.native_id for thread in threading.enumerate() if thread.ident == ident), None)
    cause, look = _cause(native) if native is not None else (Cause(Kind.GONE, "has ended"), None)
    lines = stacks.of_frame(sys._current_frames().get(ident))
    return Stall(cause.kind, cause.why, lines, (), ("/proc", "sys._current_frames"), look.denied if look else ())


def _cause(pid: int) -> tuple[Cause, Look]:
    first = proc.look(pid)
    explained = at_once(first)
    if explained:
        return explained, first
    time.sleep(PAUSE)
    then = proc.look(pid)
    return between(first, then), then


def _stacks(pid: int, kind: Kind, threads: bool) -> tuple[list[Stack], list[str], list[str]]:
    """The stacks, main thread first; who gave them; who could not and why."""
    unseen = []
    if kind in _DEAF:
        unseen.append("by signal: none reaches it now")
    else:
        try:
            return stacks.ask(pid, threads=threads), ["signal"], []
        except Unseen as reason:
            unseen.append(f"by signal: {reason}")
    try:
        return stacks.py_spy(pid), ["py-spy"], []
    except Unseen as reason:
        return [], [], [f"Python stack, {', '.join([*unseen, str(reason)])}"]
