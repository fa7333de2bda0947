"""Who keeps a pool going: whoever waits for a result, or a thread when nobody does.

One thread at a time waits for what happens next. That is the one who calls ``map`` and needs the result: no other
thread has to be woken for it. Others who come meanwhile wait for that one to tell them. The keeper is a thread that is
started when something is to go on in the background (``apply_async``, a future), or when somebody is left waiting; it
sleeps when there is nothing of that kind.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from holdfast._system.bell import Bell
from holdfast._system.threads_at_fork import KEEPER

from .endings import terminated
from .works import Works

GRACE = 1.0  # seconds that another thread has to finish what it is at


class Awaited(Protocol):
    """What somebody waits for."""

    def ready(self) -> bool: ...

    def rest(self, seconds: float | None) -> None:
        """Until another thread says that it is ready, or for so long."""
        ...


class Turns:
    """Belongs to a pool, with its works. Any thread may use it."""

    def __init__(self, works: Works) -> None:
        self.works, self._bell = works, Bell()
        works.waiter.watch(self._bell.fileno())
        self._turn = threading.Lock()  # held by the one who waits for what happens
        self._whose = 0  # which thread that is
        self._change = threading.Condition()
        self._waiting = 0  # threads that wait for the one who waits
        self._keeper: threading.Thread | None = None
        self._armed = 0, math.inf  # what the one who waits knows
        self._errands: deque[Callable[[], object]] = deque()

    def wait_for(self, what: Awaited, timeout: float | None = None) -> None:
        """Keep things going, or see to it that somebody does, until it is ready or the time is up."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        while not what.ready() and time.monotonic() < until:
            if self.works.closed:
                self._wait_in_vain(what)
            elif self._turn.acquire(blocking=False):
                try:
                    self._go_on(until, what.ready, awake=True)
                finally:
                    self._whose = 0
                    self._turn.release()
                    self.look_after()
            else:
                self._stand_by(what, until)

    def changed(self) -> None:
        """Something was asked of the works, by this thread: whoever waits has to know, and results may be there."""
        self.works.hand_out()
        self.nudge()

    def nudge(self) -> None:
        """The same without handing out results, which runs the code of others."""
        if self._turn.locked() and (self.works.waiter.changes, self.works.next_deadline()) != self._armed:
            self._bell.ring()
        self.look_after()

    def have_done(self, errand: Callable[[], object]) -> None:
        """By whoever keeps things going. This thread may be interrupted at any moment, and then half of it is done."""
        self._errands.append(errand)
        if self.works.closed:
            self._run_errands()
        else:
            self._bell.ring()
            self.look_after()

    def look_after(self) -> None:
        """Have the keeper on its feet if there is something for it to do."""
        if not self._is_needed() or self._turn.locked():
            return
        with self._change:
            if self._keeper is None or not self._keeper.is_alive():
                self._keeper = threading.Thread(target=self._keep, name=KEEPER, daemon=True)
                self._keeper.start()
            else:
                self._change.notify_all()

    def close(self) -> None:
        """The works are closed: end the keeper. Harmless when done before, and when it is the keeper who calls."""
        if os.getpid() != self.works.owner:
            return  # a fork, in which locks may be held for ever by threads that are not there
        with self._change:
            self._change.notify_all()
        self._bell.ring()
        keeper = self._keeper
        if keeper is not None and keeper is not threading.current_thread():
            keeper.join()
        if self._whose != threading.get_ident():  # who waits may call us, in a callback
            with self._turn:
                self._bell.close()
        self._run_errands()

    def _go_on(self, until: float, is_enough: Callable[[], bool], *, awake: bool) -> None:
        """By the one whose turn it is. ``awake``: it has nothing else to do, and is in a hurry."""
        works, self._whose = self.works, threading.get_ident()
        while not is_enough() and not works.closed and time.monotonic() < until:
            if self._errands:
                self._run_errands()
            if works.prompts.asked:
                works.prompts.relay()
            self._armed = works.waiter.changes, works.next_deadline()
            wait = works.waiter.wait_awake if awake and works.is_prompt else works.waiter.wait
            ready = wait(min(until, self._armed[1]) - time.monotonic())
            if self._bell.fileno() in ready:
                self._bell.silence()
            try:
                works.take_in(ready)
            finally:  # if that was the end of it, all who wait have an error for a result
                works.hand_out()
        if works.closed:
            self._run_errands()

    def _run_errands(self) -> None:
        while self._errands:
            try:
                errand = self._errands.popleft()
            except IndexError:
                return  # another thread was faster
            errand()
            self.works.hand_out()

    def _wait_in_vain(self, what: Awaited) -> None:
        """All that the works had to say is said, but another thread may be about to pass it on."""
        self.works.hand_out()
        what.rest(GRACE)
        if not what.ready():
            raise terminated()

    def _stand_by(self, what: Awaited, until: float) -> None:
        with self._change:
            self._waiting += 1
        try:
            self.look_after()
            what.rest(None if until == math.inf else until - time.monotonic())
        finally:
            with self._change:
                self._waiting -= 1

    def _is_needed(self) -> bool:
        works = self.works
        wanted = works.background > 0 or self._waiting > 0 or works.draining or bool(self._errands)
        return not works.closed and wanted

    def _may_rest(self) -> bool:
        return not self.works.closed and not self._is_needed()

    def _keep(self) -> None:
        while not self.works.closed:
            with self._turn:
                self._go_on(math.inf, self._may_rest, awake=False)
                self._whose = 0
            with self._change:
                while self._may_rest():
                    self._change.wait()
