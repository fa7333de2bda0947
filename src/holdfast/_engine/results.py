"""Batches on their way to the user, and the errors that stand in their place."""

from __future__ import annotations

from typing import Any

from holdfast._transport.codec import Encoded
from holdfast._transport.messages import Loaded

from .berth import Berth


class InArena:
    """A batch that lies in its worker's arena. Belongs to whoever takes it: looked at once, or discarded."""

    __slots__ = ("_berth", "_blocks", "_build", "_inline", "size")

    def __init__(self, berth: Berth, message: Loaded) -> None:
        self._berth, self._blocks, self._inline = berth, message.blocks, message.inline
        self._build = berth.decoder.learn(Encoded(*message[1:5]))
        self.size = sum(size for _, size in message.blocks) if message.blocks else 0

    def value(self) -> Any:
        return self._berth.decoder.decode(self._build, self._blocks, self._inline)

    def discard(self) -> None:
        for block, _ in self._blocks:
            self._berth.arena.discard(block)


class ByReference:
    """A batch of a worker thread: the object itself."""

    __slots__ = ("_value", "size")

    def __init__(self, value: Any) -> None:
        self._value, self.size = value, 0  # it takes nothing from an arena

    def value(self) -> Any:
        return self._value

    def discard(self) -> None: ...


class Error:
    """An exception in place of a batch."""

    __slots__ = ("error", "size")

    def __init__(self, error: BaseException) -> None:
        self.error, self.size = error, 0

    def discard(self) -> None: ...


Result = InArena | ByReference | Error


class Results:
    """What has arrived and is not delivered. While a result is announced it is kept apart: it may be taken at once."""

    def __init__(self) -> None:
        self._kept: dict[int, Result] = {}
        self._arriving: tuple[int, Result] | None = None

    def announce(self, batch: int, result: Result) -> None:
        self._arriving = batch, result

    def settle(self) -> None:
        """Whoever was told of it has answered: keep it, if it was not taken."""
        if self._arriving is not None:
            self.keep(*self._arriving)
            self._arriving = None

    def keep(self, batch: int, result: Result) -> None:
        self._kept[batch] = result

    def take(self, batch: int) -> Result:
        if self._arriving is not None and self._arriving[0] == batch:
            result, self._arriving = self._arriving[1], None
            return result
        return self._kept.pop(batch)

    def clear(self) -> None:
        self._kept.clear()
