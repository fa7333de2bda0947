"""How long a new loader takes to its first batch."""

from __future__ import annotations

import statistics
import time

from bench.contest import Turn
from bench.measures.opening import opening
from bench.works.work import Loader, Open, Work

OPENINGS = 10
ENOUGH = 2.0  # seconds; then a go has no further opening


class Openings:
    """Each go makes loaders one after another, takes one batch of each, and closes it outside of the time.

    The figure is the median, in ms. One loader was made before them: what a library keeps from one to the next (a
    zygote, a cluster, files) is there.
    """

    note = ""

    def __init__(self, open_: Open, work: Work) -> None:
        self._open, self._work = open_, work
        self._opening()

    def go(self) -> float:
        until, taken = time.perf_counter() + ENOUGH, [self._opening()]
        while len(taken) < OPENINGS and time.perf_counter() < until:
            taken.append(self._opening())
        return 1000 * statistics.median(taken)

    def _opening(self) -> float:
        began = time.perf_counter()
        loader = self._open(self._work)
        try:
            return take_one(loader, self._work) - began
        finally:
            loader.close()

    def close(self) -> None:
        pass


def take_one(loader: Loader, work: Work) -> float:
    """When the first batch was there. It is looked at, and the iterator let go, only then."""
    iterator = iter(loader)
    batch = next(iterator)
    came = time.perf_counter()
    del iterator
    numbers = work.numbers(batch)
    if len(set(numbers)) != work.batch_size or not set(numbers) <= set(range(work.length)):
        raise AssertionError(f"the first batch has the samples {numbers}")
    if loader.ordered and not work.shuffle and numbers != list(range(work.batch_size)):
        raise AssertionError(f"the first batch has the samples {numbers}")
    return came


def start(turn: Turn) -> Openings:
    return Openings(*opening(turn))
