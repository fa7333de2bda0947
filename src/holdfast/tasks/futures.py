"""Futures that take little: somebody who submits ten thousand calls has as many of them.

One of `concurrent.futures` has a condition with a dozen objects of its own from the beginning, in case somebody waits
for just this one. They are made for nothing most of the time, and then gone through by the garbage collector, together
with all of torch's: a third of the time of a tiny call. Here a condition is made when somebody waits.
"""

from __future__ import annotations

import concurrent.futures
import threading
from _thread import RLock
from concurrent.futures._base import PENDING
from typing import Any, TypeVar

R = TypeVar("R")


class Calm(RLock):  # type: ignore[misc]  # typeshed has it final, which it is in no Python
    """A condition, of which there is only the lock until somebody waits. What is said of conditions holds: whoever
    waits or notifies has the lock."""

    __slots__ = ("_condition", "_waiting")

    _condition: threading.Condition | None

    def __init__(self) -> None:
        self._condition, self._waiting = None, 0

    def wait(self, timeout: float | None = None) -> bool:
        if self._condition is None:
            self._condition = threading.Condition(self)
        self._waiting += 1
        try:
            return self._condition.wait(timeout)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._condition = None  # which has us for its lock: neither would go without the garbage collector

    def notify_all(self) -> None:
        if self._condition is not None:
            self._condition.notify_all()


class Future(concurrent.futures.Future[R]):
    """With the attributes of every future, which those rely on who wait for several of them."""

    def __init__(self) -> None:
        condition: Any = Calm()
        self._condition = condition
        self._state = PENDING
        self._result = None
        self._exception = None
        self._waiters: list[Any] = []
        self._done_callbacks: list[Any] = []
