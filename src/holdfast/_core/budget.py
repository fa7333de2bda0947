"""Restarts: when the next life begins, how many there were, and when to give up."""

from __future__ import annotations

from .commands import Cause
from .limits import Limits

AT_ONCE = 2  # deaths of a seat in a row that are answered without delay
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0


class Budget:
    __slots__ = ("deaths", "limits", "restarts", "row")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.restarts = 0
        self.deaths = 0  # of workers that had something to do
        self.row = 0  # deaths in a row, of anyone, without a batch completed by anyone

    def looping(self) -> bool:
        return self.row >= self.limits.deaths_in_a_row

    def spend(self) -> Cause | None:
        """Take one restart, or say what stands against it."""
        if self.limits.max_restarts is not None and self.restarts >= self.limits.max_restarts:
            return "restarts"
        self.restarts += 1
        return None


def pause(deaths: int) -> float:
    """How long a seat stays empty after that many deaths in a row.

    Counted for each seat: a seat that crashes whenever it starts backs off although its neighbours are well, and
    a crew that was killed as one is back at once.
    """
    if deaths <= AT_ONCE:
        return 0.0
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(deaths - AT_ONCE - 1, 30))
