"""All or nothing, for what several threads change, each of which may be interrupted at any moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType


class Guard:
    """A lock that whoever holds it may take again. When what is done under it ends in an exception (Ctrl-C, or a bug),
    nobody knows what was done and what was not: ``give_up`` is called, still under the lock."""

    __slots__ = ("_give_up", "_lock")

    def __init__(self, give_up: Callable[[], None]) -> None:
        self._lock, self._give_up = threading.RLock(), give_up

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            if kind is not None:
                self._give_up()
        finally:
            self._lock.release()
