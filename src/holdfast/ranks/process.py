"""A rank's process, from the inside: it ends as a child of ``multiprocessing`` does, whichever way it was started."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Process
from typing import Any, NamedTuple

from holdfast._system import posix_child

from .telling import Telling


class Habits(NamedTuple):
    """Of the parent's process, which its ranks keep."""

    parent: int
    cores: frozenset[int] | None
    hears_interrupts: bool
    authkey: bytes
    threads: int  # of torch
    prints_lines: bool  # what it prints is shown by line, and is not to wait for a full buffer

    @classmethod
    def of_this_process(cls, threads: int, prints_lines: bool) -> Habits:
        cores = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        hears = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
        return cls(os.getpid(), cores, hears, bytes(multiprocessing.current_process().authkey), threads, prints_lines)

    def take_over(self) -> None:
        if self.cores is not None:
            with suppress(OSError):
                os.sched_setaffinity(0, self.cores)
        multiprocessing.current_process().authkey = self.authkey
        if self.prints_lines and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)


class Errand(NamedTuple):
    """What is shipped, once for all ranks."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    habits: Habits


class RankProcess(Process):
    """What ``multiprocessing.current_process()`` is in a rank. Made in the rank itself, and never started."""

    def __init__(self, rank: int, telling: Telling, errand: Callable[[], Errand]) -> None:
        super().__init__(name=f"rank {rank}")
        self._rank, self._telling, self._errand = rank, telling, errand

    def live(self, parent: int) -> int:
        """The exit status. The threads and children of this process have ended, and its finalizers have run."""
        sentinel = None
        with suppress(AttributeError, OSError):
            sentinel = os.pidfd_open(parent)
        self._parent_pid = parent
        return int(self._bootstrap(parent_sentinel=sentinel))  # type: ignore[attr-defined]  # not in its stub

    def run(self) -> None:
        sys.exit(self._status())

    def _status(self) -> int:
        telling = self._telling
        try:
            telling.unpacking()
            fn, args, habits = self._errand()
            habits.take_over()
            posix_child.set_name(self.name)
            _publish(fn)
            telling.began()
            if habits.hears_interrupts:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            value = fn(self._rank, *args)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            telling.returned(value)
        except SystemExit as end:
            return telling.exited(end)
        except BaseException as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                error.__traceback__ = error.__traceback__.tb_next  # it begins in the user's code
            telling.raised(error)
            return 1
        return 0


def _publish(fn: Callable[..., Any]) -> None:
    """What a function of a script refers to is found in ``__main__`` here, too: it came by value, and pickle
    (``torch.save``, ``all_gather_object``) looks for it by name."""
    if getattr(fn, "__module__", None) == "__main__" and hasattr(fn, "__globals__"):
        main = vars(sys.modules["__main__"])
        for name, value in (*fn.__globals__.items(), (fn.__name__, fn)):
            main.setdefault(name, value)
