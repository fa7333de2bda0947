"""How long tasks of each kind take, and so how many of them a worker may have on its hands."""

from __future__ import annotations

from .pace import Pace

AHEAD = 0.002  # seconds of work that a worker may have on its hands behind what it is doing
MOST_AHEAD = 16  # tasks
KINDS = 1024  # whose pace is remembered


class TaskPaces:
    def __init__(self) -> None:
        self.known: dict[int, Pace] = {}
        self.ahead: dict[int, int] = {}  # kind -> how many of them may wait behind what a worker runs

    def observe(self, kind: int, seconds: float) -> bool:
        """Take in how long a task took. Returns whether nothing was known about its kind."""
        pace = self.known.get(kind)
        if pace is None:
            pace = self._first_of(kind)
        pace.observe(seconds)
        most = pace.observed if pace.observed < MOST_AHEAD else MOST_AHEAD  # the first one may be no example
        self.ahead[kind] = int(AHEAD / pace.typical) if pace.typical * most > AHEAD else most
        return pace.observed == 1

    def _first_of(self, kind: int) -> Pace:
        if len(self.known) >= KINDS:
            self.known.clear()
            self.ahead.clear()
        pace = self.known[kind] = Pace()
        return pace
