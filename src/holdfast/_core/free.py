"""Map-style: any worker may load any batch.

Every batch has a *home*, the seat that torch would give it to, and goes there whenever it can: with workers of equal
speed, batch i is loaded by worker i % seats. Whoever is free takes what its home cannot.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable

from .commands import Command
from .events import EpochBegan
from .limits import Limits
from .pace import Pace
from .schedule import NEVER, Schedule
from .seats import Phase, Seat
from .shelf import Shelf


class Free(Schedule):
    def __init__(self, limits: Limits, seats: list[Seat], pace: Pace) -> None:
        super().__init__(limits, seats, pace, Shelf(limits.in_order, seats))
        self.drawn = 0  # number of the next batch to come from the sampler
        self.pending: list[int] = []  # drawn and with nobody, lowest first
        self.paused: dict[int, tuple[float, float]] = {}  # failed: since when, and when to try again

    def begin(self, epoch: EpochBegan) -> list[int]:
        self.first, self.sampler_ended = self.drawn, False
        self.drawn += epoch.start
        self.pending.clear()
        self.paused.clear()
        self.again_at = NEVER
        for seat in self.seats:
            seat.held.clear()
        self.shelf.open(self.first, self.drawn, frozenset(self.first + batch for batch in epoch.done))
        return self.shelf.clear()

    def draw(self, count: int) -> None:
        batches: Iterable[int] = range(self.drawn, self.drawn + count)
        self.drawn += count
        if self.shelf.given:
            batches = [batch for batch in batches if batch not in self.shelf.given]
            count = len(batches)
        self.pending.extend(batches)
        self.shelf.undelivered += count

    def room(self, now: float) -> int:
        shelf = self.shelf
        normal = self.window - shelf.undelivered
        if normal > 0:
            return normal
        if now < self.run_ahead_at():
            return 0
        return min(self.window - shelf.unfinished + len(self.paused), normal + self.limits.run_ahead)

    def run_ahead_at(self) -> float:
        shelf = self.shelf
        undelivered = shelf.undelivered
        on_hands = undelivered - len(shelf.done) - len(self.paused)
        idle = on_hands < self.window <= undelivered < self.window + self.limits.run_ahead
        if not idle or not self.may_run_ahead():
            return NEVER
        if shelf.turn in self.paused:
            return max(self.paused[shelf.turn][0], self.wanted_at) + self.pace.grace
        holder = self._holder(shelf.turn)
        return self.overdue_at(holder) if holder else NEVER

    def assign(self, now: float, commands: list[Command]) -> None:
        if not self.pending:
            return
        kept: list[int] = []
        for batch in self.pending:
            seat = self._place(batch)
            if seat:
                self.send(seat, batch, now, commands)
            else:
                kept.append(batch)
        self.pending = kept

    def exhausted(self) -> bool:
        return self.sampler_ended and not self.shelf.undelivered

    def wants(self, seat: Seat) -> bool:
        return bool(self.pending) or bool(self.paused) or not self.sampler_ended

    def lose(self, seat: Seat) -> None:
        for batch in seat.held:
            insort(self.pending, batch)
        seat.held.clear()

    def resume(self, seat: Seat, now: float, commands: list[Command]) -> None:
        pass  # pending batches are assigned after every event

    def pause(self, batch: int, now: float, again_at: float) -> None:
        """It failed, and nobody holds it any more."""
        self.paused[batch] = now, again_at
        self.again_at = min(self.again_at, again_at)

    def wake(self, now: float) -> None:
        for batch in [batch for batch, (_, again_at) in self.paused.items() if again_at <= now]:
            del self.paused[batch]
            insort(self.pending, batch)
        self.again_at = min((again_at for _, again_at in self.paused.values()), default=NEVER)

    def pauses(self, now: float) -> list[str]:
        waits = ((batch, max(0.0, again_at - now)) for batch, (_, again_at) in self.paused.items())
        return [f"batch {batch} to be tried again in {seconds:.1f} s" for batch, seconds in waits]

    def pardon(self, batch: int, now: float, again_at: float) -> None:
        self.pause(batch, now, again_at)

    def condemn(self, batch: int) -> list[int]:
        self.shelf.put(batch, size=0)
        return []

    def _place(self, batch: int) -> Seat | None:
        if not self.shelf.in_order:
            return self._least_loaded()
        home = self.seats[(batch - self.first) % len(self.seats)]
        if home.phase is Phase.READY and len(home.held) < self.prefetch:
            return home
        # A crew gets ready one by one: were the early ones to take it all, the round robin would never begin.
        return None if home.fresh and home.phase is Phase.STARTING else self._least_loaded()

    def _least_loaded(self) -> Seat | None:
        best, least = None, self.prefetch
        for seat in self.seats:
            if seat.phase is Phase.READY and len(seat.held) < least:
                best, least = seat, len(seat.held)
        return best

    def _holder(self, batch: int) -> Seat | None:
        home = self.seats[(batch - self.first) % len(self.seats)]
        if batch in home.held:
            return home
        return next((seat for seat in self.seats if batch in seat.held), None)
