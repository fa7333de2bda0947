"""Which sample keeps killing workers."""

from __future__ import annotations

from collections import Counter

from .commands import Condemn

DEATHS_OF_A_BATCH = 3  # times the attempts that one sample gets


class Suspects:
    """Counts deaths by what the dead were loading.

    Samples of a batch count apart: a worker killed from outside while it loads an innocent one must not make that
    batch poison. But a batch that kills wherever it is cut (it may be too big for the memory) must end, too.
    """

    __slots__ = ("attempts", "deaths")

    def __init__(self, attempts: int) -> None:
        self.attempts = attempts
        self.deaths: dict[int, Counter[int | None]] = {}

    def blame(self, batch: int, sample: int | None, *, certain: bool) -> Condemn | None:
        deaths = self.deaths.setdefault(batch, Counter())
        deaths[sample] += 1
        if certain or deaths[sample] >= self.attempts:
            return Condemn(batch, sample, deaths[sample])
        if deaths.total() >= DEATHS_OF_A_BATCH * self.attempts:
            return Condemn(batch, None, deaths.total())
        return None

    def forget(self, batch: int) -> None:
        """It is tried again, perhaps without the sample that did it: a clean slate."""
        self.deaths.pop(batch, None)

    def clear(self) -> None:
        self.deaths.clear()
