"""Iterable: every seat has its own stream, which nobody else can load.

The k-th batch of seat s in an epoch has the number ``first + k * seats + s``, whatever the timing. A stream that ends
makes the later numbers of its seat void; the turn passes over them. What the sampler gives is no more than a leave to
ask for one more batch, so draws are counted and not numbered.

Every seat has a share of the window, ``prefetch`` batches, that no other can use up: a neighbour that runs ahead can
never take the draw that the next batch to give is waiting for.
"""

from __future__ import annotations

import math

from .commands import Command, Send
from .limits import Limits
from .pace import Pace
from .schedule import NEVER, Schedule
from .seats import Phase, Seat
from .shelf import Shelf


class Bound(Schedule):
    def __init__(self, limits: Limits, seats: list[Seat], shelf: Shelf, pace: Pace) -> None:
        super().__init__(limits, seats, shelf, pace)
        self.leaves = 0  # drawn and not yet used to ask for a batch
        self.streams = 0  # that have not ended

    def begin(self) -> list[int]:
        self.first = max(self.first, *(seat.slot - seat.number for seat in self.seats))
        self.sampler_ended = False
        self.leaves, self.streams = 0, len(self.seats)
        for seat in self.seats:
            seat.held.clear()
            seat.slot, seat.end, seat.waiting = self.first + seat.number, math.inf, 0
        return self.shelf.clear(self.first)

    def draw(self, count: int) -> None:
        self.leaves += count

    def end_sampler(self) -> None:
        self.sampler_ended = True
        if not self.leaves:
            self._end_all()

    def room(self, now: float) -> int:
        ahead = now >= self.run_ahead_at()
        room = extra = 0
        for seat in self.seats:
            share = self._share(seat)
            room += share
            if ahead and not share and self._could_run(seat):
                extra += self.prefetch - len(seat.held)
        return room + min(extra, self._spare()) - self.leaves if extra else room - self.leaves

    def run_ahead_at(self) -> float:
        if not self.may_run_ahead():
            return NEVER
        holder = self.seat_of(self.shelf.turn)
        if self.shelf.turn not in holder.held or holder.phase is not Phase.READY:
            return NEVER
        if not any(self._could_run(seat) and not self._share(seat) for seat in self.seats) or self._spare() <= 0:
            return NEVER
        return self.overdue_at(holder)

    def assign(self, now: float, commands: list[Command]) -> None:
        while self.leaves and (seat := self._taker(now)):
            self.leaves -= 1
            self.shelf.undelivered += 1
            self.send(seat, seat.slot, now, commands)
            seat.slot += len(self.seats)
            if self.sampler_ended and not self.leaves:
                self._end_all()

    def end_stream(self, seat: Seat, batch: int) -> list[int]:
        """The stream of this seat ends before ``batch``; returns the results that are void by that."""
        void = [held for held in seat.held if held >= batch]
        seat.held = [held for held in seat.held if held < batch]
        self.shelf.undelivered -= len(void)
        waste = [done for done in self.shelf.done if done >= batch and self.seat_of(done) is seat]
        for done in waste:  # condemned in an earlier life, which got further than this one
            self.shelf.drop(done)
            seat.waiting -= 1
        self._end(seat, batch)
        return waste

    def exhausted(self) -> bool:
        return not self.streams and not self.shelf.undelivered

    def wants(self, seat: Seat) -> bool:
        return bool(seat.held) or seat.end == math.inf

    def lose(self, seat: Seat) -> None:
        pass  # only this seat can load them: they stay in `held` for its next life

    def resume(self, seat: Seat, now: float, commands: list[Command]) -> None:
        seat.since = now
        commands += [Send(seat.who, batch) for batch in seat.held]

    def skip(self, seat: Seat) -> int:
        upto = seat.held[0] if seat.held else seat.slot
        return (upto - self.first) // len(self.seats)

    def keep(self, batch: int, size: int) -> None:
        self.shelf.put(batch, size)
        self.seat_of(batch).waiting += 1

    def take(self) -> int | None:
        batch = self.shelf.take()
        if batch is not None:
            self.seat_of(batch).waiting -= 1
            if self.streams < len(self.seats):
                self._pass_over_void()
        return batch

    def seat_of(self, batch: int) -> Seat:
        return self.seats[(batch - self.first) % len(self.seats)]

    def _taker(self, now: float) -> Seat | None:
        """Of all seats that may be asked for a batch now, the one whose next number is the lowest."""
        ahead = now >= self.run_ahead_at()
        best = None
        for seat in self.seats:
            if (best is None or seat.slot < best.slot) and (self._share(seat) or (ahead and self._could_run(seat))):
                best = seat
        return best

    def _share(self, seat: Seat) -> int:
        """Batches that this seat may be asked for by the normal rule."""
        if seat.phase is not Phase.READY or seat.end < math.inf:
            return 0
        return max(0, self.prefetch - len(seat.held) - seat.waiting)

    def _could_run(self, seat: Seat) -> bool:
        return seat.phase is Phase.READY and seat.end == math.inf and len(seat.held) < self.prefetch

    def _spare(self) -> int:
        """What may still run ahead, when every other seat's share is kept for it."""
        used = sum(max(self.prefetch, len(seat.held) + seat.waiting) for seat in self.seats)
        return self.window + self.limits.run_ahead - used

    def _end(self, seat: Seat, batch: int) -> None:
        if seat.end == math.inf:
            self.streams -= 1
        seat.end = min(seat.end, batch)
        self._pass_over_void()

    def _end_all(self) -> None:
        for seat in self.seats:
            self._end(seat, seat.slot)

    def _pass_over_void(self) -> None:
        for _ in self.seats:
            if self.shelf.turn < self.seat_of(self.shelf.turn).end:
                return
            self.shelf.turn += 1
