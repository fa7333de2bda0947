"""Workers as forks of the trainer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from . import posix_child
from .process import ChildProcess


def forked_child(work: Callable[[], None], stderr: int) -> ChildProcess:
    """Fork, and run ``work`` in the child, which speaks to ``stderr``; it must not return."""
    parent = os.getpid()
    from_main = threading.current_thread() is threading.main_thread()
    pid = os.fork()
    if pid:
        return ChildProcess(pid)
    try:
        posix_child.reset_signals()
        posix_child.tie_to(parent, from_main)
        posix_child.reset_affinity()
        posix_child.lead("stderr", stderr)
        work()
    finally:
        os._exit(1)
    raise AssertionError("unreachable")
