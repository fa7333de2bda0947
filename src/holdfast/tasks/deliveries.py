"""Results on their way to those who asked."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holdfast._transport.arena import ArenaView
from holdfast._transport.parcels import Packed, unwrap

from .calls import Call

_logger = logging.getLogger("holdfast")
_NONE: Mapping[int, BaseException | None] = {}


class Delivery(NamedTuple):
    """Results for some items of a call: packed, or ``values``."""

    call: Call
    items: Sequence[int]
    packed: Packed | None
    arena: ArenaView | None
    errors: Mapping[int, BaseException | None] = _NONE
    instead: Mapping[int, Any] = _NONE  # values of a policy

    def hand_over(self) -> None:
        call, items, errors = self.call, self.items, self.errors
        try:
            values = self._values()
        except (Exception, SystemExit) as error:  # they cannot be unpickled here
            values, errors = [None] * len(items), dict.fromkeys(items, error)
        for k, value in self.instead.items():
            values[items.index(k)] = value
        call.settle(items, values, errors)

    def _values(self) -> list[Any]:
        if self.packed is None:
            return [None] * len(self.items)
        values: list[Any] = unwrap(self.packed, self.arena.lend if self.arena is not None else _no_arena)
        return values


def _no_arena(block: int, size: int) -> memoryview:
    raise AssertionError("a parcel without an arena")


class Deliveries:
    """Added under the pool's lock, handed out without it, by any thread."""

    def __init__(self) -> None:
        self._waiting: deque[Delivery] = deque()

    def add(self, delivery: Delivery) -> None:
        self._waiting.append(delivery)

    def hand_out(self) -> None:
        while self._waiting:
            try:
                delivery = self._waiting.popleft()
            except IndexError:
                return  # another thread was faster
            try:
                delivery.hand_over()
            except Exception:
                _logger.exception("holdfast: in a callback of a pool")
            except BaseException:  # Ctrl-C, in the thread that waits: the next one who comes does it
                self._waiting.appendleft(delivery)
                raise
