"""What a pool is asked to do, and how it is cut up."""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast._engine.berth import Berth

from .kits import Kit
from .outlet import Sent


class Call(ABC):
    """Items that a function is called with. Belongs to whoever asked; ``settle`` is called, once for each item and
    without a lock, by whichever thread keeps the pool going.

    ``shape``: an item is the argument ("map"), the arguments ("star"), or arguments and keywords ("call").
    ``background``: nobody may be waiting for it, and it goes on all the same.
    ``retried``: what becomes of a failure, the pool's policy decides; else whoever asked.
    """

    retried = True

    def __init__(self, kit: Kit, items: list[Any], shape: str, timeout: float | None, *, background: bool) -> None:
        self.kit, self.items, self.shape, self.timeout, self.background = kit, items, shape, timeout, background
        self.base = 0  # the number of the first item in the life of the pool
        self.left = len(items)  # items without a result
        self.tasks: Sequence[int] = ()  # that it was cut into
        self._attempts: dict[tuple[str, int], int] | None = None  # most calls never need it

    @abstractmethod
    def settle(self, items: Sequence[int], values: list[Any], errors: Mapping[int, BaseException | None]) -> None:
        """Results for some items; for those in ``errors`` that is the error, or None: there is none yet."""

    def attempt(self, item: int, ended: str) -> int:
        """The how-manieth it was that ended in this way."""
        if self._attempts is None:
            self._attempts = {}
        self._attempts[ended, item] = count = self._attempts.get((ended, item), 0) + 1
        return count

    def begin(self) -> bool:
        """A worker is about to be sent some of it; False when nobody wants it any more."""
        return True

    def handed(self, berth: Berth) -> None:  # noqa: B027  # for those who want to know
        """This worker is sent some of it."""

    def describe(self, item: int) -> str:
        """As one would write it."""
        args, kwargs = (self.items[item],), {}
        if self.shape == "call":
            args, kwargs = self.items[item]
        elif self.shape == "star" and isinstance(self.items[item], tuple | list):
            args = self.items[item]
        said = [*map(_shown, args), *(f"{name}={_shown(value)}" for name, value in kwargs.items())]
        return f"{self.kit.name}({', '.join(said)})"


def _shown(value: object) -> str:
    try:
        return reprlib.repr(value)
    except Exception:
        return f"<{type(value).__qualname__}>"


class Task:
    """Some items of a call, as they are sent to a worker: those in ``todo`` have no result yet."""

    __slots__ = ("alone", "call", "first", "number", "sent", "stop", "todo")

    def __init__(self, number: int, call: Call, first: int, stop: int) -> None:
        self.number, self.call, self.first, self.stop = number, call, first, stop
        self.todo: Sequence[int] = range(first, stop)
        self.sent: Sent | None = None
        self.alone = False  # one of them has ended a worker, and it is not known which

    def take_out(self, items: Sequence[int], again: Sequence[int] = ()) -> None:
        """These have a result now; but those are to be tried again."""
        todo = self.todo
        if len(items) == len(todo):
            self.todo = again
        elif not again and isinstance(todo, range) and isinstance(items, range) and items.start == todo.start:
            self.todo = todo[len(items) :]
        else:
            done = set(items)
            self.todo = [*(item for item in todo if item not in done), *again]
