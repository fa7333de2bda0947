"""What a standby worker does to itself before anything else, on whichever system it runs."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time

from . import posix_child
from .segments import NamedSegment, names_of, remove_named

PATIENCE = 1.0  # seconds between a trainer's last breath and its end


def settle() -> None:
    """Leave Ctrl-C to the trainer."""
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    else:
        posix_child.reset_signals()
        posix_child.reset_affinity()


def tie_to(parent: int, from_main_thread: bool) -> None:
    """Die with the trainer even in C code that holds the GIL. On Windows the trainer sees to that, by a job object."""
    if sys.platform != "win32":
        posix_child.tie_to(parent, from_main_thread)


def clear_up_after(parent: int) -> None:
    """Remove the names of a trainer that was killed; nobody else would."""
    deadline = time.monotonic() + PATIENCE
    while os.getppid() == parent:
        if time.monotonic() > deadline:
            return  # it lives
        time.sleep(0.01)
    remove_named(names_of(parent))


def write_crashes_into(logbook: NamedSegment, start: int) -> None:
    """The Python stack of a crash goes into the logbook; on Windows, where that is no file, to stderr."""
    if sys.platform == "win32":
        faulthandler.enable(all_threads=False)
    else:
        posix_child.write_crashes_to(logbook.open(), start)
