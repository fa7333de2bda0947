"""The ranks of one call to `spawn`, from their start until the last of them has ended."""

from __future__ import annotations

import atexit
import math
import os
import pickle
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from holdfast._system.memory_events import OomWatch
from holdfast._system.process import Process
from holdfast._system.waiting import Waiter
from holdfast.errors import ResultLost

from .failures import failure
from .rank import Rank
from .telling import Ending

SETTLING = 0.1  # seconds: who failed a moment before may be heard of a moment later
GRACE = 5.0  # seconds between SIGTERM and SIGKILL
INTERRUPTED = 1.0  # seconds to end by themselves on Ctrl-C, which a terminal sends to all
REAP = 5.0  # seconds to wait for the kernel to end a process that was killed


class Context:
    """Looks like torch's ``ProcessContext``. Owns the ranks: when ``join`` has raised or returned True, none is left.

    It has no thread: what comes through this process (results, errors, printed lines) is taken in by ``join``.
    """

    def __init__(self, function: str, daemon: bool) -> None:
        self._function, self._daemon, self._owner = function, daemon, os.getpid()
        self._ranks: list[Rank] = []
        self._watch, self._well = OomWatch(), time.monotonic()
        self._error: Exception | None = None
        self._results: list[Any] | None = None
        self._closing = ExitStack()
        atexit.register(self._at_exit)

    @property
    def processes(self) -> list[Process]:
        """By rank."""
        return [rank.process for rank in self._ranks]

    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until all have returned: True; or until the time is up: False.

        When one has failed, the others get ``grace_period`` seconds to end by themselves, SIGTERM, as long again (or a
        moment), and SIGKILL; then the error of the one that failed first is raised. So are they ended on Ctrl-C.
        """
        until = math.inf if timeout is None else time.monotonic() + timeout
        if self._error is not None:
            raise self._error
        try:
            if not self._settled(until):
                return False
            if self._failed():
                self._end(grace_period)
        except BaseException:
            self.end()
            raise
        self._finish()
        return True

    @property
    def results(self) -> list[Any]:
        """What the function returned, by rank, once ``join`` has returned True."""
        if self._results is None:
            raise ValueError("the ranks have not been joined")
        return self._results

    def end(self) -> None:
        """End them all, as Ctrl-C does: a moment, SIGTERM, a moment, SIGKILL. Harmless when they have ended."""
        try:
            self._wait(INTERRUPTED)
            self._end(None)
        finally:
            for rank in self._ranks:
                rank.stop(kill=True)  # not even a second Ctrl-C leaves one behind
                rank.process.join(REAP)
            self._close()

    def add(self, rank: Rank) -> None:
        self._ranks.append(rank)

    def at_close(self, close: Callable[[], object]) -> None:
        self._closing.callback(close)

    # -- waiting -------------------------------------------------------------------------------

    def _failed(self) -> list[Rank]:
        return [rank for rank in self._ranks if rank.failed_at() is not None]

    def _all_ended(self) -> bool:
        return all(rank.ended for rank in self._ranks)

    def _settled(self, until: float) -> bool:
        """Whether, by then, one has failed or all have ended."""
        late = False
        while not (self._failed() or self._all_ended()):
            if late:
                return False
            self._hear(until - time.monotonic())
            late = time.monotonic() >= until
        return True

    def _wait(self, seconds: float) -> None:
        """Until all have ended, or the time is up."""
        until = time.monotonic() + seconds
        while not self._all_ended() and (left := until - time.monotonic()) > 0:
            self._hear(left)

    def _hear(self, seconds: float) -> None:
        waiter = Waiter()
        for rank in self._ranks:
            rank.watch(waiter)
        ready = set(waiter.wait(max(0.0, seconds)))
        for rank in self._ranks:
            rank.hear(ready, self._well)
        if not self._failed():
            self._well = time.monotonic()

    # -- ending --------------------------------------------------------------------------------

    def _end(self, grace_period: float | None) -> None:
        """End everybody. Those that have failed or returned are on their way, and are let alone for the moment."""
        self._wait(SETTLING if grace_period is None else grace_period)
        for rank in self._ranks:
            if rank.told is None and rank.failed_at() is None:
                rank.stop(kill=False)
        self._wait(GRACE if grace_period is None else grace_period)
        for rank in self._ranks:
            rank.stop(kill=True)
        self._wait(REAP)

    def _finish(self) -> None:
        try:
            if failed := self._failed():
                self._error = failure(failed, self._function, self._watch)
        finally:
            self._close()
        if self._error is not None:
            raise self._error
        self._results = [_result(rank) for rank in self._ranks]

    def _close(self) -> None:
        """Calling it twice is harmless."""
        atexit.unregister(self._at_exit)
        for rank in self._ranks:
            rank.close()
        self._closing.close()

    def _at_exit(self) -> None:
        """The program ends, and nobody has joined them: it waits for them, or, if they are daemons, ends them."""
        if os.getpid() != self._owner:
            return
        if self._daemon:
            self._end(None)
            self._close()
        else:
            self.join()


def _result(rank: Rank) -> Any:
    assert rank.told is not None
    assert rank.told.ending is Ending.RETURNED
    try:
        value, lost = pickle.loads(rank.packed)
    except Exception as error:
        value, lost = None, f"{type(error).__name__}: {error}"
    if lost:
        from holdfast._engine.notices import of_the_user

        text = f"what rank {rank.number} returned cannot be passed to this process, and None stands for it: {lost}"
        warnings.warn(ResultLost(text), stacklevel=of_the_user())
    return value
