"""How long a batch normally takes, and so when one is slow."""

from __future__ import annotations

LEARNING = 16  # batches before the measure is trusted
GRACE_WHILE_LEARNING = 0.050
LEAST_GRACE = 0.001
SLOW = 3.0  # times the typical: no batch counts for more than that
OVERDUE = 1.5  # times the typical: when the others stop waiting; by then they have finished what they held
FLOOR = 0.001  # an observation may always count this much, so that a typical of 0 can grow
WEIGHT = 0.1


class Pace:
    """A moving mean of batch durations in which no single one counts for more than ``SLOW`` times the mean.

    A plain mean would let one batch in a hundred that takes 100 times as long double the grace, and every slow batch
    after it hold up the crew for longer.
    """

    __slots__ = ("grace", "observed", "typical")

    def __init__(self) -> None:
        self.observed = 0
        self.typical = 0.0
        self.grace = GRACE_WHILE_LEARNING

    def observe(self, duration: float) -> None:
        self.observed += 1
        ceiling = SLOW * self.typical + FLOOR
        if duration > ceiling and self.observed > 1:
            duration = ceiling
        if self.observed < LEARNING:
            self.typical += (duration - self.typical) / self.observed
            return
        self.typical += (duration - self.typical) * WEIGHT
        grace = OVERDUE * self.typical
        self.grace = grace if grace > LEAST_GRACE else LEAST_GRACE
