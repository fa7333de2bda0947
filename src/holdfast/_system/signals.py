"""What this process does with signals that the supervision of workers depends on."""

from __future__ import annotations

import signal
from typing import NamedTuple

_ASKED = ("SIGCHLD", "SIGINT", "SIGTERM")


class Signals(NamedTuple):
    child_ended: str = "default"  # what is done with SIGCHLD: "default", "ignored", or the name of the handler
    blocked: tuple[str, ...] = ()  # of SIGCHLD, SIGINT, SIGTERM, in this thread; workers inherit it


def signals() -> Signals:
    if not hasattr(signal, "SIGCHLD"):
        return Signals()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    blocked = tuple(name for name in _ASKED if getattr(signal, name) in mask)
    return Signals(_named(signal.getsignal(signal.SIGCHLD)), blocked)


def _named(handler: object) -> str:
    if handler is signal.SIG_IGN:
        return "ignored"
    if handler is signal.SIG_DFL:
        return "default"
    return getattr(handler, "__qualname__", None) or "a handler that is not Python's"
