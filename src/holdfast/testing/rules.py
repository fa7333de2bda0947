"""The rules of the window, for batches that anyone may load and for streams that belong to a seat.

Stated exactly. With U the batches drawn and not delivered, W = seats * prefetch:

* normally U <= W; not done (U without what is on the shelf) is never more than W;
* in order, while the batch whose turn it is is not done and its worker has been on its work for the grace, and the
  results on the shelf are below ``run_ahead_bytes``: U <= W + ``run_ahead``;
* bound: the same for each seat's own share (prefetch in place of W), and W + ``run_ahead`` in all.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from .._core.events import Worker

if TYPE_CHECKING:
    from .world import World

ROUNDING = 1e-9


class Rules(ABC):
    def __init__(self, world: World, promise: Callable[[object, str], None]) -> None:
        self.world, self.limits, self.promise = world, world.limits, promise
        self.window = self.limits.seats * self.limits.prefetch
        self.ran_ahead = self.somebody_died = False
        self.condemned: set[int] = set()
        self.fresh: set[Worker | None] = set()  # started with an epoch, and not yet ready

    @abstractmethod
    def wants(self, seat: int) -> bool:
        """Whether a worker in this seat has, or may get, something to do."""

    @abstractmethod
    def turn(self) -> int | None:
        """The batch to give next; unordered, the one that was completed first."""

    @abstractmethod
    def sees_draw(self, count: int) -> None: ...

    @abstractmethod
    def sees_send(self, seat: int, batch: int) -> None: ...

    @abstractmethod
    def sees_end(self) -> None: ...

    @abstractmethod
    def looks_around(self) -> None: ...

    def skip(self, seat: int) -> int:
        return 0

    def is_void(self, batch: int) -> bool:
        return False

    def turn_is_late(self) -> bool:
        """Whether the crew may run ahead: order holds it up, and the grace is over (at the least it can be)."""
        grace = 0.050 if self.world.completed < 16 else 0.001
        since = self.held_up_since()
        if since is None:
            return False
        return self.world.now - max(since, self.world.wanted_at) >= grace - ROUNDING

    def held_up_since(self) -> float | None:
        """Since when one batch holds up the others, if results wait for order and there is place for more of them."""
        world, turn = self.world, self.turn()
        if not self.limits.in_order or turn is None or sum(world.kept.values()) >= self.limits.run_ahead_bytes:
            return None
        if turn in world.paused and world.paused[turn][1] > world.now:
            return world.paused[turn][0]
        holder = next((who for who in world.alive if turn in world.inbox[who]), None)
        return None if holder is None else world.busy_since[holder]

    def wakes_to_run_ahead(self, since: float) -> None:
        machine = self.world.machine
        latest = max(since, self.world.wanted_at) + machine.pace.grace + ROUNDING
        self.promise(machine.next_deadline() <= latest, "nobody will wake us to run ahead of a slow worker")


class FreeRules(Rules):
    def wants(self, seat: int) -> bool:
        return not self.world.sampler_ended or bool(self.with_nobody())

    def with_nobody(self) -> set[int]:
        return self.world.undone.difference(*(self.world.inbox[who] for who in self.world.alive))

    def pending(self) -> list[int]:
        """Drawn, not done, with nobody, and not waiting to be tried again."""
        return sorted(self.with_nobody() - self.waiting() - {self.world.on_trial})

    def waiting(self) -> set[int]:
        """To be tried again, and not yet."""
        return {batch for batch, (_, again_at) in self.world.paused.items() if again_at > self.world.now}

    def turn(self) -> int | None:
        if self.limits.in_order:
            return next(iter(self.world.to_give[len(self.world.given) :]), None)
        return next(iter(self.world.kept), None)

    def sees_draw(self, count: int) -> None:
        unfinished = len(self.world.undone) - len(self.waiting()) + count
        undelivered = len(self.world.undone) + count + len(self.world.kept)
        self.promise(unfinished <= self.window, "more on its way than the crew can hold")
        if undelivered > self.window:
            self.promise(undelivered <= self.window + self.limits.run_ahead, "ran ahead too far")
            self.promise(self.turn_is_late(), "ran ahead of a worker that is not slow, or with no place left")
            self.ran_ahead = True

    def sees_send(self, seat: int, batch: int) -> None:
        self.promise(batch in self.world.undone, "sent a batch that is not to be loaded")
        home = self.world.seat_of(batch)
        sitting = self.world.process_in(home)
        self.somebody_died |= sitting is not None and self.world.is_retiring(sitting)
        holes = bool(self.world.epoch.began.done)  # with them, the homes do not take turns
        if self.limits.in_order and not self.somebody_died and not self.ran_ahead and not holes:
            self.promise(seat == home, f"not round robin: batch {batch} belongs to worker {home}")
        passed_over = [lower for lower in self.pending() if lower < batch and not self.waits_for_its_home(lower)]
        self.promise(not passed_over, f"sent before {passed_over}")

    def waits_for_its_home(self, batch: int) -> bool:
        return self.limits.in_order and self.world.process_in(self.world.seat_of(batch)) in self.fresh

    def sees_end(self) -> None:
        world = self.world
        self.promise(world.sampler_ended and world.drawn == world.epoch.length, "ended early")
        self.promise(sorted(world.given) == world.to_give, "not every batch once")

    def looks_around(self) -> None:
        world = self.world
        if any(len(world.held_by(who)) < self.limits.prefetch and not world.is_retiring(who) for who in world.alive):
            idle = [batch for batch in self.pending() if not self.waits_for_its_home(batch)]
            self.promise(not idle, f"{idle} lie about while a worker has room")
        if world.asked or world.sampler_ended or not world.epochs:
            return
        undelivered = len(world.undone) + len(world.kept)
        self.promise(undelivered >= self.window, "does not draw though there is room")
        on_hands = len(world.undone) - len(self.waiting())
        place = on_hands < self.window and undelivered < self.window + self.limits.run_ahead
        since = self.held_up_since()
        if place and since is not None:
            self.wakes_to_run_ahead(since)


class BoundRules(Rules):
    def wants(self, seat: int) -> bool:
        return not self.ended(seat) or any(self.world.seat_of(batch) == seat for batch in self.world.undone)

    def ended(self, seat: int) -> bool:
        return seat in self.world.void or (self.world.sampler_ended and not self.leaves())

    def leaves(self) -> int:
        """Drawn, and not yet used to ask a stream for a batch."""
        return self.world.drawn - sum(self.world.asked_of)

    def slot(self, seat: int) -> int:
        return self.world.first + self.world.asked_of[seat] * self.limits.seats + seat

    def load(self, seat: int) -> int:
        """Batches this seat was asked for that are not delivered."""
        return sum(self.world.seat_of(batch) == seat for batch in [*self.world.undone, *self.world.kept])

    def is_void(self, batch: int) -> bool:
        return batch >= self.world.void.get(self.world.seat_of(batch), math.inf)

    def turn(self) -> int | None:
        if not self.limits.in_order:
            return next(iter(self.world.kept), None)
        return min([*self.world.undone, *self.world.kept, *self._next_slots()], default=None)

    def _next_slots(self) -> list[int]:
        return [self.slot(seat) for seat in range(self.limits.seats) if not self.ended(seat)]

    def skip(self, seat: int) -> int:
        mine = [batch for batch in self.world.undone if self.world.seat_of(batch) == seat]
        return (min([*mine, self.slot(seat)]) - self.world.first) // self.limits.seats

    def sees_draw(self, count: int) -> None:
        self.promise(count + self.leaves() <= self.window, "more leaves than the crew can use")

    def sees_send(self, seat: int, batch: int) -> None:
        self.promise(self.world.seat_of(batch) == seat, "sent to a seat whose stream does not have it")
        if batch < self.slot(seat):
            self.promise(batch in self.world.undone, "sent again though it is done, or void")
            return
        self.promise(batch == self.slot(seat), f"a hole in the stream: the next one is {self.slot(seat)}")
        self.promise(self.leaves() > 0, "sent more than was drawn")
        self.promise(not self.ended(seat), "sent beyond the end of the stream")
        if self.load(seat) >= self.limits.prefetch:
            undelivered = len(self.world.undone) + len(self.world.kept)
            self.promise(undelivered < self.window + self.limits.run_ahead, "ran ahead too far")
            self.promise(self.turn_is_late(), "ran ahead of a worker that is not slow, or with no place left")
        lower = [who.seat for who in self.world.alive if self.has_share(who.seat) and self.slot(who.seat) < batch]
        self.promise(not lower, f"sent before the next of {lower}")

    def has_share(self, seat: int) -> bool:
        return not self.ended(seat) and self.load(seat) < self.limits.prefetch

    def sees_end(self) -> None:
        world = self.world
        self.promise(not self._next_slots(), "ended before the streams did")
        for seat in range(self.limits.seats):
            length = min(world.epoch.streams[seat], world.asked_of[seat], world.cut.get(seat, math.inf))
            mine = {(batch - world.first) // self.limits.seats for batch in world.given if world.seat_of(batch) == seat}
            behind = world.epoch.given(seat)
            self.promise(set(range(behind, int(length))) <= mine, f"the stream of seat {seat} is not complete")
            self.promise(mine.isdisjoint(range(behind)), f"of the stream of seat {seat}, some are given a second time")
            extra = {world.first + place * self.limits.seats + seat for place in mine if place >= length}
            self.promise(extra <= self.condemned, f"{extra} cannot be in the stream of seat {seat}")

    def looks_around(self) -> None:
        world = self.world
        undelivered = len(world.undone) + len(world.kept)
        self.promise(undelivered <= self.window + self.limits.run_ahead, "ran ahead into the share of others")
        self.promise(not any(self.is_void(batch) for batch in world.kept), "keeps what nobody will ask for")
        if world.asked or world.sampler_ended or not world.epochs:
            return
        idle = [who.seat for who in world.alive if self.has_share(who.seat)]
        self.promise(not idle, f"does not ask {idle} though there is room")
        loads = [max(self.limits.prefetch, self.load(seat)) for seat in range(self.limits.seats)]
        able = [who for who in world.alive if not self.ended(who.seat) and self._has_room(who)]
        since = self.held_up_since()
        if able and since is not None and sum(loads) < self.window + self.limits.run_ahead:
            self.wakes_to_run_ahead(since)

    def _has_room(self, who: Worker) -> bool:
        return len(self.world.held_by(who)) < self.limits.prefetch
