"""How long the trainer waits between two epochs, with workers that persist."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

from bench.contest import Turn
from bench.measures.epoch import check
from bench.measures.opening import opening
from bench.works.work import Loader, Work

EPOCHS = 10
ENOUGH = 2.0  # seconds; then a go has no further epoch


class Turnarounds:
    """Each go is a row of short epochs. The figure is the median, in ms, of the times from the last batch of one to the
    first batch of the next.

    The samples say when they were made. A loader that makes samples of an epoch before it is asked for that epoch may
    be fast for this reason, which is noted: its data set cannot be told of a new epoch.
    """

    def __init__(self, loader: Loader, work: Work) -> None:
        self._loader = loader
        self.note = check(loader, work)
        self._order = self.note

    def go(self) -> float:
        gaps: list[float] = []
        early = False
        until, last = time.monotonic() + ENOUGH, self._last_batch_of(iter(self._loader))
        while not gaps or (len(gaps) < EPOCHS and last < until):
            asked = time.monotonic()
            epoch = iter(self._loader)
            batch = next(epoch)
            gaps.append(time.monotonic() - last)
            early |= float(batch[1].min()) < asked
            last = self._last_batch_of(epoch)
        ahead = "begins epochs before it is asked" if early else ""
        self.note = ", ".join(filter(None, (self._order, ahead)))
        return 1000 * statistics.median(gaps)

    @staticmethod
    def _last_batch_of(epoch: Iterator[Any]) -> float:
        """When it came. That there is no further one is found out afterwards, and counts as turn-around."""
        last = 0.0
        for _ in epoch:
            last = time.monotonic()
        return last

    def close(self) -> None:
        self._loader.close()


def start(turn: Turn) -> Turnarounds:
    open_, work = opening(turn)
    return Turnarounds(open_(work), work)
