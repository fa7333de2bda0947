"""Results that are loaded and wait for their turn."""

from __future__ import annotations

from .seats import Seat


class Shelf:
    """Owns every result from the moment it is taken in to its delivery or discard."""

    __slots__ = ("bytes", "done", "first", "given", "in_order", "seats", "turn", "undelivered")

    def __init__(self, in_order: bool, seats: list[Seat]) -> None:
        self.in_order, self.seats = in_order, seats
        self.done: dict[int, int] = {}  # batch -> bytes, in order of completion
        self.bytes = 0
        self.first = 0  # number of the first batch of the epoch
        self.turn = 0  # in order: the batch to give next
        self.given: frozenset[int] = frozenset()  # batches beyond it that an earlier run has given
        self.undelivered = 0  # drawn and not given: all of `done`, and what is still to be loaded

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
            if self.given:
                self.pass_over()
        elif self.done:
            batch = next(iter(self.done))
        else:
            return None
        self.bytes -= self.done.pop(batch)
        self.undelivered -= 1
        return batch

    def pass_over(self) -> None:
        """Move the turn on to a batch that is, or will be, here."""
        while self.turn in self.given:
            self.turn += 1

    def open(self, first: int, turn: int, given: frozenset[int] = frozenset()) -> None:
        """An epoch begins with batch ``first``; those before ``turn`` and the ``given`` ones are behind us."""
        self.first, self.turn, self.given = first, turn, given

    def clear(self) -> list[int]:
        """Forget everything; returns what was here."""
        waste = sorted(self.done)
        self.done.clear()
        self.bytes = self.undelivered = 0
        return waste


class StreamShelf(Shelf):
    """Results of streams: it knows how many wait for each seat, and passes over numbers that a stream does not have."""

    __slots__ = ()

    def put(self, batch: int, size: int) -> None:
        self.done[batch] = size
        self.bytes += size
        self.seat_of(batch).waiting += 1

    def take(self) -> int | None:
        batch = super().take()
        if batch is not None:
            self.seat_of(batch).waiting -= 1
            self.pass_over()
        return batch

    def drop(self, batch: int) -> None:
        """Forget a result, and that it was ever asked for."""
        self.bytes -= self.done.pop(batch)
        self.undelivered -= 1
        self.seat_of(batch).waiting -= 1

    def seat_of(self, batch: int) -> Seat:
        return self.seats[(batch - self.first) % len(self.seats)]

    def pass_over(self) -> None:
        for _ in self.seats:
            seat = self.seat_of(self.turn)
            if seat.begin <= self.turn < seat.end:
                return
            self.turn += 1
        # A round without any: what is left, if anything, are streams of which an earlier run has given more.
        self.turn = min((seat.begin for seat in self.seats if self.turn <= seat.begin < seat.end), default=self.turn)
