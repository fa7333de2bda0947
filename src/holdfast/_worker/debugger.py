"""``breakpoint()`` and ``pdb.set_trace()`` inside of a worker: pdb, with its prompt where the trainer is.

A worker has no terminal. Its debugger sends what it has to say to the trainer, and gets a line back; see
``_engine/prompts.py`` for the other end. `pdb.Pdb` itself is replaced, in the worker alone: so ``breakpoint()``,
``pdb.set_trace()`` under any name and ``pdb.post_mortem()`` all lead here, and PYTHONBREAKPOINT means what it always
does.
"""

from __future__ import annotations

import contextlib
import fnmatch
import io
import math
import os
import pdb
import sys
import threading
from collections.abc import Callable
from time import monotonic
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import Any

from holdfast._transport.logbook import Logbook
from holdfast._transport.messages import Message, Prompted, Released, Typed

from .line import Line

OURS = "holdfast._*"  # modules that are stepped over
_terminal: Terminal | None = None  # of the worker that this process is


class Terminal(io.TextIOBase):
    """Where a debugger of this worker reads and writes. Owned by the process."""

    def __init__(self, seat: int, line: Line, logbooks: tuple[Logbook, ...]) -> None:
        self.seat, self._line, self._logbooks = seat, line, logbooks
        self._home = os.getpid(), threading.get_ident()
        self._unsaid, self.place = "", ""
        self._is_open = False
        self.nobody = False  # could type anything: a debugger would only be in the way

    @property
    def is_near(self) -> bool:
        """Only the thread that loads can talk to the trainer, and no fork of it."""
        return self._home == (os.getpid(), threading.get_ident())

    def write(self, text: str) -> int:
        self._unsaid += text
        return len(text)

    def readline(self, size: int | None = -1) -> str:  # type: ignore[override]  # size is there for the type only
        text, self._unsaid = self._unsaid, ""
        typed = self._asked(Prompted(text, self.place))
        if typed.interrupted:
            raise KeyboardInterrupt
        self.nobody = typed.line is None
        self._is_open = not self.nobody
        return typed.line or ""

    def release(self) -> None:
        """The user has let the program go on: it is the turn of others."""
        if self._is_open:
            self._is_open = False
            self._line.say(Released())

    def _asked(self, message: Message) -> Typed:
        self._note(math.inf)  # who waits for the user has not stalled
        try:
            return self._line.converse(message)
        finally:
            self._note(monotonic())

    def _note(self, since: float) -> None:
        for logbook in self._logbooks:
            logbook.since[()] = since


class Debugger(pdb.Pdb):
    """Pdb on the trainer's terminal; as ever where it is given files of its own, and in a fork of a worker."""

    def __init__(
        self, completekey: str = "tab", stdin: Any = None, stdout: Any = None, *args: Any, **more: Any
    ) -> None:
        own = _terminal if stdin is None and stdout is None else None
        self._terminal = own if own is not None and own.is_near else None
        if self._terminal is not None:
            stdin = stdout = self._terminal
            more["skip"] = [*(more.get("skip") or ()), OURS]
            more["nosigint"] = True  # Ctrl-C is the trainer's
            more.pop("mode", None)  # in which newer versions end the process when they are told to quit
        super().__init__(completekey, stdin, stdout, *args, **more)
        if self._terminal is not None:
            self.prompt = f"(Pdb, worker {self._terminal.seat}) "

    def set_trace(self, frame: FrameType | None = None, **more: Any) -> None:
        if self._terminal is None or not self._terminal.nobody:
            super().set_trace(frame or sys._getframe().f_back, **more)

    def interaction(self, frame: FrameType | None, traceback: Any, *more: Any) -> None:
        if self._terminal is None:
            super().interaction(frame, traceback, *more)
            return
        self._terminal.place = _place(frame, traceback)
        stdin = sys.stdin  # for ``interact``, and for whatever of the user's code is called at the prompt
        sys.stdin = self._terminal
        try:
            with contextlib.redirect_stdout(self._terminal):
                super().interaction(frame, traceback, *more)
        finally:
            sys.stdin = stdin

    def get_stack(self, frame: FrameType | None, traceback: TracebackType | None) -> tuple[list[Any], int]:
        """Without the calls that lead to the user's code, which tell a user nothing."""
        stack, here = super().get_stack(frame, traceback)
        ours = [place for place, (each, _) in enumerate(stack[:here]) if _is_ours(each)] if self._terminal else []
        first = ours[-1] + 1 if ours else 0
        return stack[first:], here - first

    def set_continue(self) -> None:
        super().set_continue()
        self._release()

    def set_quit(self) -> None:
        super().set_quit()
        self._release()

    def do_EOF(self, arg: str) -> Any:
        """Ctrl-D: go on. Pdb ends the program then, which here would be the end of a sample."""
        return self.do_continue(arg)

    def do_quit(self, arg: str) -> bool:
        """Raise `bdb.BdbQuit` here, in the user's code: the trainer gets it, as it would without workers."""
        self._user_requested_quit = True
        self.set_quit()
        return True

    do_q = do_exit = do_quit

    def _release(self) -> None:
        if self._terminal is not None:
            self._terminal.release()


def install(seat: int, line: Line, *logbooks: Logbook) -> None:
    """In a worker process, for good.

    What a fork has inherited of a notebook or of pytest, which replace these as well, would wait for the trainer's
    locks. A debugger of an IDE knows of forks, and is left alone.
    """
    global _terminal
    _terminal = Terminal(seat, line, logbooks)
    if "pydevd" not in sys.modules:
        pdb.Pdb, pdb.set_trace, sys.breakpointhook = Debugger, _set_trace, sys.__breakpointhook__  # type: ignore[misc]


def _set_trace(*, header: str | None = None, **more: Any) -> None:
    """As that of pdb."""
    debugger = Debugger()
    if header is not None:
        debugger.message(header)
    debugger.set_trace(sys._getframe().f_back, **more)


_one_at_a_time = threading.Lock()  # workers that are threads, at the terminal that they share


def post_mortem(error: BaseException, note: Callable[[float], object]) -> None:
    """A prompt where this was raised. ``note`` is told since when this worker is at it: it does not stall meanwhile."""
    if _terminal is not None and _terminal.nobody:
        return
    note(math.inf)
    try:
        with _one_at_a_time:
            debugger = pdb.Pdb(nosigint=True)  # or it would keep Ctrl-C to itself afterwards, also in the trainer
            debugger.message(f"{type(error).__name__}: {error}")
            debugger.reset()
            debugger.interaction(None, error.__traceback__)
            if _terminal is not None:
                _terminal.release()
    finally:
        note(monotonic())


def _is_ours(frame: FrameType) -> bool:
    return fnmatch.fnmatch(frame.f_globals.get("__name__", ""), OURS)


def _place(frame: FrameType | None, traceback: Any) -> str:
    """Newer versions give the exception, and not its traceback."""
    traceback = getattr(traceback, "__traceback__", traceback)
    line = frame.f_lineno if frame is not None else 0
    if isinstance(traceback, TracebackType):
        *_, (frame, line) = walk_tb(traceback)
    return f"{frame.f_code.co_filename}:{line}" if frame is not None else ""
