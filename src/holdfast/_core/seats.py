"""A place for a worker: who sits there, and what is on its hands."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field

from .commands import Start
from .events import Worker


class Phase(enum.Enum):
    EMPTY = enum.auto()
    STARTING = enum.auto()
    READY = enum.auto()
    RETIRING = enum.auto()  # gets no more work, and is replaced when it has done what it holds


@dataclass(slots=True, eq=False)
class Seat:
    number: int
    life: int = 1  # the present one, or while the seat is empty the next: the dead are never mistaken for it
    who: Worker = field(init=False)  # kept, because making one for each message costs more
    phase: Phase = Phase.EMPTY
    held: list[int] = field(default_factory=list)  # sent (or to be sent again) and not returned; it loads the first
    since: float = 0.0  # when it began what it is loading
    deaths: int = 0  # in a row, without a batch completed in this seat
    restart_at: float = math.inf
    taken: int = 0  # batches that this life was sent
    fresh: bool = True  # started with an epoch, and not because somebody died

    # Its stream, in bound mode
    begin: int = 0  # number of its first batch that an earlier run has not given
    slot: int = 0  # number of the next batch to ask it for
    end: float = math.inf  # number of the first batch that it does not have
    waiting: int = 0  # its results on the shelf

    def __post_init__(self) -> None:
        self.who = Worker(self.number, self.life)

    def start(self, skip: int, *, fresh: bool) -> Start:
        self.phase, self.restart_at, self.fresh, self.taken = Phase.STARTING, math.inf, fresh, 0
        return Start(self.who, skip)

    def vacate(self) -> None:
        self.phase = Phase.EMPTY
        self.life += 1
        self.who = Worker(self.number, self.life)

    def owes(self, now: float) -> str | None:
        """What we wait for from this seat, in words."""
        if self.phase is Phase.STARTING:
            return f"worker {self.number} to be ready"
        if self.phase in (Phase.READY, Phase.RETIRING):
            return f"batch {self.held[0]} from worker {self.number}" if self.held else None
        if self.restart_at < math.inf:
            return f"worker {self.number} to be started again in {max(0.0, self.restart_at - now):.1f} s"
        return None
