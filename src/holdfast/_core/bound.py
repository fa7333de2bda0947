"""Iterable: every seat has its own stream, which nobody else can load.

The k-th batch of seat s in an epoch has the number ``first + k * seats + s``, whatever the timing. A stream that ends
makes the later numbers of its seat void; the turn passes over them. What the sampler gives is no more than a leave to
ask for one more batch, so draws are counted and not numbered.

Every seat has a share of the window, ``prefetch`` batches, that no other can use up: a neighbour that runs ahead can
never take the draw that the next batch to give is waiting for.
"""

from __future__ import annotations

from bisect import insort

from .commands import Command, Send
from .events import EpochBegan
from .limits import Limits
from .pace import Pace
from .schedule import NEVER, Schedule
from .seats import Phase, Seat
from .shelf import StreamShelf


class Bound(Schedule):
    shelf: StreamShelf

    def __init__(self, limits: Limits, seats: list[Seat], pace: Pace) -> None:
        super().__init__(limits, seats, pace, StreamShelf(limits.in_order, seats))
        self.leaves = 0  # drawn and not yet used to ask for a batch
        self.streams = 0  # that have not ended

    def begin(self, epoch: EpochBegan) -> list[int]:
        self.first = max(self.first, *(seat.slot - seat.number for seat in self.seats))
        self.sampler_ended = False
        self.leaves, self.streams = 0, len(self.seats) - len(epoch.ended)
        given = epoch.given or (0,) * len(self.seats)
        for seat, count in zip(self.seats, given, strict=True):
            seat.held.clear()
            seat.begin = seat.slot = self.first + seat.number + count * len(self.seats)
            seat.end = seat.slot if seat.number in epoch.ended else NEVER
            seat.waiting = 0
        self.shelf.open(self.first, turn=self.first)
        self.shelf.pass_over()
        return self.shelf.clear()

    def draw(self, count: int) -> None:
        self.leaves += count

    def end_sampler(self) -> None:
        self.sampler_ended = True
        if not self.leaves:
            self._end_all()

    def room(self, now: float) -> int:
        shares = extra = 0
        for seat in self.seats:
            if seat.phase is Phase.READY and seat.end == NEVER:  # `_share`, written out: this runs at every event
                hands = self.prefetch - len(seat.held)
                if hands > seat.waiting:
                    shares += hands - seat.waiting
                else:
                    extra += hands
        if extra and now >= self.run_ahead_at():
            shares += min(extra, self._spare())
        return shares - self.leaves

    def run_ahead_at(self) -> float:
        if not self.may_run_ahead():
            return NEVER
        turn = self.shelf.turn
        holder = self.shelf.seat_of(turn)
        if holder.phase is not Phase.READY or turn not in holder.held:
            return NEVER
        for seat in self.seats:
            if self._could_run(seat) and self._share(seat) <= 0:
                return self.overdue_at(holder) if self._spare() > 0 else NEVER
        return NEVER

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
        waste = [done for done in self.shelf.done if done >= batch and self.shelf.seat_of(done) is seat]
        for done in waste:  # condemned in an earlier life, which got further than this one
            self.shelf.drop(done)
        self._end(seat, batch)
        return waste

    def pardon(self, batch: int, now: float, again_at: float) -> None:
        insort(self.shelf.seat_of(batch).held, batch)  # when, is for the pause of its seat to say

    def condemn(self, batch: int) -> list[int]:
        self.shelf.put(batch, size=0)
        return self.end_stream(self.shelf.seat_of(batch), batch + 1)  # nobody gets beyond it

    def exhausted(self) -> bool:
        return not self.streams and not self.shelf.undelivered

    def wants(self, seat: Seat) -> bool:
        return bool(seat.held) or seat.end == NEVER

    def lose(self, seat: Seat) -> None:
        pass  # only this seat can load them: they stay in `held` for its next life

    def resume(self, seat: Seat, now: float, commands: list[Command]) -> None:
        seat.since = now
        commands += [Send(seat.who, batch) for batch in seat.held]

    def skip(self, seat: Seat) -> int:
        upto = seat.held[0] if seat.held else seat.slot
        return (upto - self.first) // len(self.seats)

    def _taker(self, now: float) -> Seat | None:
        """Whom to ask for a batch: whose next number is the lowest of those with a share left, or else who may run."""
        best = None
        for seat in self.seats:
            if (best is None or seat.slot < best.slot) and self._share(seat) > 0:
                best = seat
        if best is None and now >= self.run_ahead_at():
            best = min(filter(self._could_run, self.seats), key=lambda seat: seat.slot)
        return best

    def _share(self, seat: Seat) -> int:
        """How many batches this seat may be asked for by the normal rule."""
        if seat.phase is not Phase.READY or seat.end < NEVER:
            return 0
        return self.prefetch - len(seat.held) - seat.waiting

    def _could_run(self, seat: Seat) -> bool:
        return seat.phase is Phase.READY and seat.end == NEVER and len(seat.held) < self.prefetch

    def _spare(self) -> int:
        """What may still run ahead, when every other seat's share is kept for it."""
        used = sum(max(self.prefetch, len(seat.held) + seat.waiting) for seat in self.seats)
        return self.window + self.limits.run_ahead - used

    def _end(self, seat: Seat, batch: int) -> None:
        if seat.end == NEVER:
            self.streams -= 1
        seat.end = min(seat.end, batch)
        self.shelf.pass_over()

    def _end_all(self) -> None:
        for seat in self.seats:
            self._end(seat, seat.slot)
