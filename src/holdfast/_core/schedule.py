"""What every way of handing out work has in common: when to draw, and that nobody idles behind a slow neighbour.

The normal rule keeps at most ``seats * prefetch`` batches between sampler and user. When the next batch to give is
late, results that merely wait for it do not count any more and the crew *runs ahead*, up to a number and a size.
The slow one gets a grace first: jitter must not break the round robin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from .commands import Command, Send
from .events import EpochBegan
from .limits import Limits
from .pace import Pace
from .seats import Phase, Seat
from .shelf import Shelf

NEVER = float("inf")


class Schedule(ABC):
    def __init__(self, limits: Limits, seats: list[Seat], pace: Pace, shelf: Shelf) -> None:
        self.limits, self.seats, self.pace, self.shelf = limits, seats, pace, shelf
        self.window, self.prefetch = limits.window, limits.prefetch  # copies: a slot is read faster than a property
        self.recycle_after = NEVER if limits.recycle_after is None or limits.bound else limits.recycle_after
        self.wanted_at = 0.0  # when the user last began to wait
        self.first = 0  # number of the first batch of this epoch
        self.sampler_ended = True  # until an epoch begins
        self.again_at = NEVER  # when the first of those that pause is to be tried again

    @abstractmethod
    def begin(self, epoch: EpochBegan) -> list[int]:
        """A new epoch, numbered from beyond every number used before; returns the results that nobody will read.

        What an earlier run has given of it keeps its numbers: seeds and seats hang on them.
        """

    @abstractmethod
    def draw(self, count: int) -> None:
        """The sampler gave ``count`` more batches."""

    def end_sampler(self) -> None:
        """The sampler has no more."""
        self.sampler_ended = True

    @abstractmethod
    def room(self, now: float) -> int:
        """How many batches may be drawn now."""

    @abstractmethod
    def assign(self, now: float, commands: list[Command]) -> None:
        """Send what is waiting to whoever has room."""

    @abstractmethod
    def run_ahead_at(self) -> float:
        """When the grace of the batch that holds up the others ends; ``inf`` if that would allow no draw."""

    @abstractmethod
    def exhausted(self) -> bool:
        """Everything of this epoch was given."""

    @abstractmethod
    def wants(self, seat: Seat) -> bool:
        """Whether there is, or may come, work that needs a worker in this seat."""

    @abstractmethod
    def lose(self, seat: Seat) -> None:
        """Its worker is gone: what it held has to be loaded again."""

    @abstractmethod
    def resume(self, seat: Seat, now: float, commands: list[Command]) -> None:
        """Its new worker is ready."""

    @abstractmethod
    def pardon(self, batch: int, now: float, again_at: float) -> None:
        """A batch that is with nobody is to be loaded again."""

    @abstractmethod
    def condemn(self, batch: int) -> list[int]:
        """A batch that is with nobody has an error for its result; returns the results that are void by that."""

    def wake(self, now: float) -> None:  # noqa: B027  # a stream waits by itself
        """What paused long enough may be sent again."""

    def pauses(self, now: float) -> list[str]:
        """What waits to be tried again, in words."""
        return []

    def skip(self, seat: Seat) -> int:
        """Leading batches of its stream that a new worker in this seat has to pass over."""
        return 0

    def overdue_at(self, holder: Seat) -> float:
        """The grace counts from when the user began to wait, at the earliest: nobody listens while it is away.

        A result that lies in the pipe since then looks like a slow worker, and the crew would run ahead of every
        user whose own step is long.
        """
        return max(holder.since, self.wanted_at) + self.pace.grace

    def may_run_ahead(self) -> bool:
        """Whether order is what holds up the crew, and there is still place on the shelf."""
        shelf = self.shelf
        return shelf.in_order and shelf.turn not in shelf.done and shelf.bytes < self.limits.run_ahead_bytes

    def send(self, seat: Seat, batch: int, now: float, commands: list[Command]) -> None:
        if not seat.held:
            seat.since = now
        seat.held.append(batch)
        seat.taken += 1
        if seat.taken >= self.recycle_after:
            seat.phase = Phase.RETIRING
        commands.append(Send(seat.who, batch))
