"""What a pool is allowed, and its places for workers: who sits there, and which tasks it holds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .events import Worker
from .seats import Phase


@dataclass(frozen=True, slots=True)
class TaskLimits:
    seats: int
    recycle_after: int | None = None
    """Tasks after which a worker is replaced by a new one; None for never."""
    crash_loop: int = 10
    """Processes in a row that end before they are ready, after which the pool gives up."""

    @property
    def deaths_in_a_row(self) -> int:
        return max(self.crash_loop, 2 * self.seats)


@dataclass(slots=True, eq=False)
class TaskSeat:
    number: int
    life: int = 1  # the present one, or while the seat is empty the next
    who: Worker = field(init=False)
    phase: Phase = Phase.EMPTY
    held: dict[int, int] = field(default_factory=dict)  # task -> kind; it runs the first. Only of one that is ready
    long_at: float = math.inf  # when the task that it runs has taken so long that no other should wait behind it
    recalled: bool = False  # what waits behind that task was asked for
    taken: int = 0  # tasks that this life was sent, without those that were taken back
    deaths: int = 0  # in a row, without a task done in this seat
    start_at: float = -math.inf  # not before

    def __post_init__(self) -> None:
        self.who = Worker(self.number, self.life)

    def vacate(self) -> None:
        self.phase, self.taken, self.recalled = Phase.EMPTY, 0, False
        self.life += 1
        self.who = Worker(self.number, self.life)

    def owes(self) -> str | None:
        """What we wait for from this worker, in words."""
        if self.phase is Phase.STARTING:
            return f"worker {self.number} to be ready"
        if self.phase is Phase.RETIRING:
            return f"worker {self.number} to end"
        return f"task {next(iter(self.held))} from worker {self.number}" if self.held else None
