"""Have the Python code of another process stop where it is, as soon as its main thread comes back from C."""

from __future__ import annotations

import signal
from collections.abc import Callable

from .posix_child import ASK_STACKS

INTERRUPT = ASK_STACKS + 1  # a real-time signal, as those for stacks
CAN_INTERRUPT = hasattr(signal, "SIGRTMIN")


def on_interrupt(handle: Callable[[], None]) -> None:
    """In a worker: ``handle`` is called between two steps of the main thread's code, and may raise."""
    if CAN_INTERRUPT:
        signal.signal(INTERRUPT, lambda number, frame: handle())
