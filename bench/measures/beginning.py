"""How fast an epoch begins, however long it is: with its order to be made, and from warm workers.

`settings["batches"]` are taken, and the epoch is then abandoned, outside of the time; where it has fewer, the next one
follows. The figure is samples per second, or with one batch the ms until it is there, the median of some epochs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

from bench.contest import Turn
from bench.measures.opening import opening
from bench.works.work import Loader, Work

ENOUGH = 2.0  # seconds; then no further epoch is begun
FIRSTS = 10  # epochs of which the first batch is taken


class Beginnings:
    note = ""

    def __init__(self, loader: Loader, work: Work, batches: int) -> None:
        self._loader, self._work, self._batches = loader, work, batches
        self._check()

    def go(self) -> float:
        if self._batches > 1:
            samples, seconds = self._begun()
            return samples / seconds
        until, taken = time.perf_counter() + ENOUGH, [self._begun()[1]]
        while len(taken) < FIRSTS and time.perf_counter() < until:
            taken.append(self._begun()[1])
        return 1000 * statistics.median(taken)

    def _begun(self) -> tuple[int, float]:
        """Samples that came, and in how many seconds."""
        touch, samples, taken, began = self._work.touch, 0, 0, time.perf_counter()
        batches = self._epochs(until=began + ENOUGH)
        for batch in batches:
            touch(batch)
            samples, taken, seconds = samples + len(batch[-1]), taken + 1, time.perf_counter() - began
            if taken == self._batches:
                break
        return samples, seconds

    def _epochs(self, until: float) -> Iterator[Any]:
        yield from self._loader
        while time.perf_counter() < until:
            yield from self._loader

    def _check(self) -> None:
        """An epoch, or the beginning of a long one, has no sample twice, and not in the order of the data set."""
        numbers: list[int] = []
        for batch in self._loader:
            numbers += self._work.numbers(batch)
            if len(numbers) >= 100_000:
                break
        if len(set(numbers)) != len(numbers) or min(numbers) < 0 or max(numbers) >= self._work.length:
            raise AssertionError(f"{len(numbers)} samples came, {len(set(numbers))} different ones")
        if numbers == sorted(numbers):
            raise AssertionError("the samples were not shuffled")

    def close(self) -> None:
        self._loader.close()


def start(turn: Turn) -> Beginnings:
    open_, work = opening(turn)
    return Beginnings(open_(work), work, int(turn.settings["batches"]))
