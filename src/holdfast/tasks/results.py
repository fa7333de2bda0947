"""What ``*_async`` returns, as in ``multiprocessing.pool``."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import TimeoutError as NotInTime
from typing import Any

from .calls import Call
from .kits import Kit
from .turns import Turns
from .works import Works

POLL = 0.01  # seconds between looks at whether a pool has ended, when another thread sees to that

_logger = logging.getLogger("holdfast")


class Ended:
    """Of a pool, to wait for."""

    def __init__(self, works: Works) -> None:
        self._works = works

    def ready(self) -> bool:
        return self._works.closed

    def rest(self, seconds: float | None) -> None:
        time.sleep(min(POLL, math.inf if seconds is None else seconds))


class AsyncResult(Call):
    """A result that is on its way: of one call, or of a map, which has one when all of its items do.

    ``map`` fails with the error of the first item, in order, that has one; all items are tried all the same.
    """

    def __init__(
        self,
        kit: Kit,
        items: list[Any],
        shape: str,
        timeout: float | None,
        turns: Turns,
        callback: Callable[[Any], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
        *,
        background: bool,
    ) -> None:
        super().__init__(kit, items, shape, timeout, background=background)
        self._turns = turns
        self._callback, self._error_callback = callback, error_callback
        self._values: list[Any] = [None] * len(items)
        self._failed: tuple[int, BaseException] | None = None
        self.total = self.missing = len(items)
        self.failures_so_far = 0
        self._lock = threading.Lock()
        self._told: threading.Event | None = None
        self._done = not items

    def get(self, timeout: float | None = None) -> Any:
        """The result, or its error raised; ``multiprocessing.TimeoutError`` when it does not come in time."""
        self.wait(timeout)
        if not self._done:
            raise NotInTime
        if self._failed is not None:
            raise self._failed[1]
        return self._value()

    def wait(self, timeout: float | None = None) -> None:
        if not self._done:
            self._turns.wait_for(self, timeout)

    def ready(self) -> bool:
        return self._done

    def successful(self) -> bool:
        if not self._done:
            raise ValueError(f"{self!r} not ready")
        return self._failed is None

    # -- for those who bring it ----------------------------------------------------------------

    def settle(self, items: Sequence[int], values: list[Any], errors: Mapping[int, BaseException | None]) -> None:
        settled = self._enter(items, values, errors)
        with self._lock:
            self.missing -= settled
            if self.missing > 0:
                return
        self._finish()

    def rest(self, seconds: float | None) -> None:
        with self._lock:
            if self._done:
                return
            if self._told is None:
                self._told = threading.Event()
        self._told.wait(seconds)

    def _enter(self, items: Sequence[int], values: list[Any], errors: Mapping[int, BaseException | None]) -> int:
        """How many of them have a result now."""
        if not errors and isinstance(items, range):
            self._values[items.start : items.stop] = values
            return len(items)
        settled = 0
        for item, value in zip(items, values, strict=True):
            error = errors.get(item)
            if error is None and item in errors:
                continue  # it is tried again
            settled += 1
            self._values[item] = value
            if error is not None:
                with self._lock:
                    self.failures_so_far += 1
                    if self._failed is None or item < self._failed[0]:
                        self._failed = item, error
        return settled

    def _finish(self) -> None:
        try:
            if self._failed is not None and self._error_callback is not None:
                self._error_callback(self._failed[1])
            elif self._failed is None and self._callback is not None:
                self._callback(self._value())
        except Exception:
            _logger.exception("holdfast: in a callback of a pool")
        self.items = []
        with self._lock:
            self._done = True
            told = self._told
        if told is not None:
            told.set()

    def _value(self) -> Any:
        return self._values[0] if self.shape == "call" else self._values
