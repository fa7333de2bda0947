"""What a standby worker does to itself before anything else, on whichever system it runs."""

from __future__ import annotations

import faulthandler
import signal
import sys

from . import posix_child
from .segments import NamedSegment


def settle(parent: int, from_main_thread: bool) -> None:
    """Leave Ctrl-C to the trainer, and die with it."""
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the trainer's job object ends us with it
        return
    posix_child.reset_signals()
    posix_child.tie_to(parent, from_main_thread)
    posix_child.reset_affinity()


def write_crashes_into(logbook: NamedSegment, start: int) -> None:
    """The Python stack of a crash goes into the logbook; on Windows, where that is no file, to stderr."""
    if sys.platform == "win32":
        faulthandler.enable(all_threads=False)
    else:
        posix_child.write_crashes_to(logbook.open(), start)
