"""Debuggers of workers, at the terminal of the trainer: one at a time, while the trainer waits for a batch anyway.

A worker that stops at ``breakpoint()`` waits for a line, and the trainer for the batch: lines are passed on, that is
all. The other workers go on meanwhile, as far as the window lets them, and a second one that stops waits for its turn.
See docs/design/11-debugging.md.
"""

from __future__ import annotations

import builtins
import os
import sys
import time
import types
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from holdfast._core.events import Worker
from holdfast._transport.logbook import Entry
from holdfast._transport.messages import Message, Prompted, Released, Typed
from holdfast._worker.debugged import up_to_debug
from holdfast.errors import NoPrompt
from holdfast.policies import Policy

from .notices import warn
from .roster import Exited, Roster

_told: set[str] = set()  # places that were explained


class Prompts:
    """Owned by whoever owns the roster, and used by whoever waits on it.

    ``doing`` says in words what a worker is at, by its logbook; ``again``, by which command that can be seen again.
    ``lock``: of the roster, where several threads use it.
    """

    def __init__(
        self,
        roster: Roster,
        doing: Callable[[Entry], str],
        again: Callable[[Entry], str] = lambda entry: "",
        lock: AbstractContextManager[object] = nullcontext(),  # noqa: B008  # it has no state
    ) -> None:
        self._roster, self._doing, self._again, self._lock = roster, doing, again, lock
        self.asked: dict[Worker, Prompted] = {}  # who waits, in the order in which they came
        self._turn: tuple[Worker, int] | None = None  # whose terminal it is, and for which of its batches
        self.seconds = 0.0  # that users took so far, and that count for nobody's limit

    def hear(self, who: Worker, message: Message | Exited) -> None:
        match message:
            case Prompted():
                self.asked[who] = message
            case Released():
                self._turn = None
            case _:
                raise AssertionError(f"a worker does not send {message}")

    def wait(self, until: float) -> list[int]:
        """As the roster waits; but first the user is asked for a line, if that is wanted."""
        if self.asked:
            self.relay()
        return self._roster.wait(until - time.monotonic())

    def relay(self) -> None:
        """Have one prompt answered, if it is somebody's turn.

        An interrupt anywhere in here leaves the prompt to be shown again.
        """
        with self._lock:
            who = self._next()
            if who is None:
                return
            message, berth = self.asked[who], self._roster[who]
            entry = berth.logbook.read()
            doing, again = self._doing(entry), self._again(entry)
        began, typed = time.monotonic(), None
        if has_terminal():
            if self._turn is None:
                self._turn = who, entry.batch
                print(f"\nworker {who.seat} (pid {berth.process.pid}), {doing}", flush=True)
            typed = typed_by_user(message.text)
        if typed is None:
            _explain(f"breakpoint() at {message.place}, in worker {who.seat}, {doing}", message.place, again)
            typed = Typed(None)
        self.seconds += time.monotonic() - began
        with self._lock:
            if self.asked.pop(who, None) is not None and who in self._roster:
                self._roster.tell(who, typed)

    def _next(self) -> Worker | None:
        for gone in [who for who in self.asked if who not in self._roster]:
            del self.asked[gone]
        if self._turn is not None:  # who steps out of its batch has done with it, and says nothing of that
            who, batch = self._turn
            if who in self._roster and self._roster[who].logbook.read().batch == batch:
                return who if who in self.asked else None
            self._turn = None
        return next(iter(self.asked), None)


def _explain(what: str, place: str, again: str) -> None:
    """Once for each place."""
    if place not in _told:
        _told.add(place)
        warn(NoPrompt(what, f"the program goes on. To stop there: {again}" if again else "the program goes on"))


def has_terminal() -> bool:
    """Whether somebody can type: at a terminal, in a notebook, or in an IDE that has a window for it."""
    if not isinstance(builtins.input, types.BuiltinFunctionType) or "PYCHARM_HOSTED" in os.environ:
        return True
    try:
        return sys.stdin.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def debugged(policy: Policy) -> tuple[Policy, ...]:
    """What of a policy workers have to know in order to debug. Where nobody can type, nothing."""
    parts = up_to_debug(policy)
    if parts and not has_terminal():
        warn(NoPrompt('on_error="debug"', "errors are raised as they are"))
        return ()
    return parts


def typed_by_user(text: str) -> Typed | None:
    """By ``input``, which notebooks replace. Ctrl-C and Ctrl-D are for the debugger. None: nobody can type there."""
    shown, newline, prompt = text.rpartition("\n")
    print(shown, end=newline, flush=True)
    try:
        return Typed(f"{input(prompt)}\n")
    except EOFError:
        print()
        return Typed("")
    except KeyboardInterrupt:
        print()
        return Typed("", interrupted=True)
    except Exception:  # a notebook run by a program, a closed standard input: each has an error of its own
        return None
