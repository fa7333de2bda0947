"""Results that are loaded and wait for their turn."""

from __future__ import annotations


class Shelf:
    """Owns every result from the moment it is taken in to its delivery or discard."""

    __slots__ = ("bytes", "done", "in_order", "turn", "undelivered")

    def __init__(self, in_order: bool) -> None:
        self.in_order = in_order
        self.done: dict[int, int] = {}  # batch -> bytes, in order of completion
        self.bytes = 0
        self.turn = 0  # in order: the batch to give next
        self.undelivered = 0  # drawn and not given; all of `done` and what is still to be loaded

    @property
    def unfinished(self) -> int:
        return self.undelivered - len(self.done)

    def put(self, batch: int, size: int) -> None:
        self.done[batch] = size
        self.bytes += size

    def take(self) -> int | None:
        """The batch whose turn it is, if it is here."""
        if self.in_order:
            batch = self.turn
            if batch not in self.done:
                return None
            self.turn = batch + 1
        elif self.done:
            batch = next(iter(self.done))
        else:
            return None
        self.bytes -= self.done.pop(batch)
        self.undelivered -= 1
        return batch

    def drop(self, batch: int) -> None:
        """Forget a result, and that it was ever drawn."""
        self.bytes -= self.done.pop(batch)
        self.undelivered -= 1

    def clear(self, turn: int) -> list[int]:
        """Forget everything, for an epoch whose first batch is ``turn``; returns what was here."""
        waste = sorted(self.done)
        self.done.clear()
        self.bytes, self.turn, self.undelivered = 0, turn, 0
        return waste
