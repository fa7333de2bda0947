"""A limit in time for code that runs in this thread, which is the main one: the alarm clock of the process."""

from __future__ import annotations

import os
import signal
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_AGAIN = 1.0  # seconds; what is raised in a finalizer, or where everything is caught, is lost
_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")})


class TimeOver(BaseException):
    """Not an ``Exception``: code that catches everything does not catch this."""


@contextmanager
def alarm(seconds: float | None) -> Iterator[None]:
    """Raises `TimeOver` in what takes longer. None for ever, and so where the system has no such clock."""
    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _ring(number: int, frame: FrameType | None) -> None:
    if not _imports_a_library(frame):
        raise TimeOver


def _imports_a_library(frame: FrameType | None) -> bool:
    """Which is left to come to its end: an interpreter crashes on what is half a torch, a moment later.

    Not a program that is in a library itself, as with ``python -m``: nobody imports that.
    """
    while frame is not None:
        above, code = frame.f_back, frame.f_code
        is_import = above is not None and above.f_code.co_filename.startswith("<frozen importlib")
        if is_import and code.co_name == "<module>" and code.co_filename.startswith(_LIBRARIES):
            return True
        frame = above
    return False
