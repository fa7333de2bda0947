"""A process that we started: how to wait for its end, learn its status, and end it."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod

from .remains import Remains, reap
from .stderr import Stderr
from .waiting import Waiter


class Process(ABC):
    """One worker's process. ``sentinel`` is readable when it has ended. Looks like a ``multiprocessing.Process``. Any
    thread may ask it: what the sentinel has to say can be read once.

    Owns ``stderr``, our end of what it says there; None when it writes to our own.
    """

    def __init__(self, pid: int | None, sentinel: int) -> None:
        self._pid, self.sentinel = pid, sentinel
        self.ident: int | None = None  # of the thread, if it is one
        self.failure = ""  # why there never was a process, if that is so
        self.stderr: Stderr | None = None
        self.remains = Remains()
        self.ended_by_us = False  # a signal of ours was to end it
        self._ended = self._closed = False
        self._reading = threading.RLock()
        self._status: int | None = None

    @abstractmethod
    def _collect(self) -> int | None:
        """The exit status, as in subprocess; None when nobody can tell. Called once, after the sentinel spoke."""

    @abstractmethod
    def send_signal(self, number: int) -> None:
        """To this very process, never to another one that got its pid; no error when it has ended."""

    @abstractmethod
    def _release(self) -> None:
        """Close descriptors."""

    @property
    def pid(self) -> int:
        assert self._pid is not None
        return self._pid

    def heard(self) -> bool:
        """The sentinel spoke: take in what it says. True when it is the end."""
        self.ended()
        return True

    def ended(self) -> None:
        """Fetch the status of a process that has ended. Calling it twice is harmless.

        The sentinel stays open until ``close``: whoever asks ``is_alive`` must not take it from those who wait on it.
        """
        with self._reading:
            if not self._ended:
                self._status = self._collect()
                self._ended = True

    def close(self) -> None:
        """Let go of the descriptors; what is known of its end stays known. Calling it twice is harmless."""
        if not self._closed:
            self._closed = self._ended = True
            if self.stderr is not None:
                self.stderr.close()
            self._release()

    def last_words(self) -> str:
        """The last lines of its stderr; what has come since the last look is passed on first."""
        if self.stderr is None:
            return ""
        self.stderr.forward()
        return self.stderr.last_lines()

    def join(self, timeout: float | None = None) -> None:
        if self._ended:
            return
        waiter, until = Waiter(), math.inf if timeout is None else time.monotonic() + timeout
        waiter.watch(self.sentinel)
        while waiter.wait(max(0.0, until - time.monotonic())):
            if self.heard():
                return

    def is_alive(self) -> bool:
        self.join(0)
        return not self._ended

    @property
    def exitcode(self) -> int | None:
        self.join(0)
        return self._status

    def terminate(self) -> None:
        self.ended_by_us = True
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.ended_by_us = True
        self.send_signal(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)


class ChildProcess(Process):
    """A direct child, watched through a pidfd: works with SIGCHLD ignored, and never mistakes the pid."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid, os.pidfd_open(pid))

    def _collect(self) -> int | None:
        try:
            os.waitid(os.P_PIDFD, self.sentinel, os.WEXITED | os.WNOWAIT)  # the pid is its own until we reap it
            found = reap(self.pid)
        except ChildProcessError:
            return None  # reaped by someone else: SIGCHLD is ignored, or the program waits for any child
        if found is None:
            return None
        _, status, self.remains = found
        return status

    def send_signal(self, number: int) -> None:
        if not self._ended:
            try:
                signal.pidfd_send_signal(self.sentinel, number)
            except ProcessLookupError:
                pass

    def _release(self) -> None:
        os.close(self.sentinel)
