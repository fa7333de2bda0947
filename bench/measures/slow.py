"""What a loader costs a trainer that is slower than it.

Each batch costs the workers some 3 ms and the trainer 5 ms, so that batches always lie ready, and a perfect loader
would cost nothing. The figure is what is lost, in µs per batch: the seconds of an epoch less those that the same steps
of the trainer take without a loader, divided by the number of batches. So it has all that a loader does at the
trainer's expense: the wait in `next`, and also threads, locks and caches that slow the trainer down in its step. The
steps without a loader are timed in the same go, in pieces before and after the epoch, of which the fastest counts.
The note says how much of it was spent in `next`.
"""

from __future__ import annotations

import time

from bench.contest import Turn
from bench.measures.epoch import check
from bench.measures.opening import opening
from bench.works.spin import multiply, turns_for
from bench.works.work import Loader, Work

STEP = 5e-3  # seconds
PIECE = 10  # steps


class SlowConsumer:
    def __init__(self, loader: Loader, work: Work, turns: int) -> None:
        self._loader, self._work, self._turns = loader, work, turns
        self.note = self._order = check(loader, work)

    def go(self) -> float:
        alone = self._alone()
        waited, began = 0.0, time.perf_counter()
        asked = began
        for batch in self._loader:
            waited += time.perf_counter() - asked
            self._work.touch(batch)
            multiply(self._turns)
            asked = time.perf_counter()
        seconds = time.perf_counter() - began
        batches = self._work.batches
        lost = seconds / batches - min(alone, self._alone())
        self.note = ", ".join(filter(None, (self._order, f"{1e6 * waited / batches:.0f} µs of it in next")))
        return 1e6 * lost

    def _alone(self) -> float:
        """Seconds of a step."""
        return min(self._steps() for _ in range(5)) / PIECE

    def _steps(self) -> float:
        began = time.perf_counter()
        for _ in range(PIECE):
            multiply(self._turns)
        return time.perf_counter() - began

    def close(self) -> None:
        self._loader.close()


def start(turn: Turn) -> SlowConsumer:
    open_, work = opening(turn)
    return SlowConsumer(open_(work), work, turns_for(turn, multiply, STEP, 200))
