"""The rate of a whole epoch, from warm workers."""

from __future__ import annotations

from bench.clock import per_second
from bench.contest import Turn
from bench.limits import LIMITS
from bench.measures.opening import opening, work_of
from bench.seat import Running
from bench.works.work import Loader, Work


class Epochs:
    """Each go is an epoch, or several short ones. The first, which is not timed, warms up and is looked at closely."""

    def __init__(self, loader: Loader, work: Work) -> None:
        self._loader, self._work = loader, work
        self.note = check(loader, work)

    def go(self) -> float:
        return self._work.amount * per_second(self._epoch)

    def _epoch(self) -> None:
        touch = self._work.touch
        for batch in self._loader:
            touch(batch)

    def close(self) -> None:
        self._loader.close()


def start(turn: Turn) -> Running:
    if turn.contender in LIMITS:
        return LIMITS[turn.contender](work_of(turn))
    open_, work = opening(turn)
    return Epochs(open_(work), work)


def check(loader: Loader, work: Work) -> str:
    """An epoch must have each sample once, and in order where that is promised. The order is told where it is not.

    A stream has no order across its workers."""
    numbers: list[int] = []
    for batch in loader:
        numbers.extend(work.numbers(batch))
    if sorted(numbers) != list(range(work.length)):
        raise AssertionError(f"{len(numbers)} samples of {work.length} came, {len(set(numbers))} different ones")
    if work.shuffle or work.stream or numbers == sorted(numbers):
        return ""
    if loader.ordered:
        raise AssertionError("the samples came in another order")
    return "not in order"
