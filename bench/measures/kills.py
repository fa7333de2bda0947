"""What is left of a peer's rate when workers are killed, and how soon the lost batch is there.

A contender that does not get through a single kill has no figure. That is tried first, in a program of its own, as some
hang then.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from bench.contest import Cannot, Turn
from bench.contests.faults import CONTROL
from bench.faults import LIMIT, QUICK_LIMIT, remember, remembered
from bench.measures.epoch import check
from bench.measures.opening import opening
from bench.works.work import Loader, Work


class Kept:
    """Each go is an epoch with kills; the control's is one without. A ratio of the two within a go would have the
    noise of both, and the best of several such would be that of the unluckiest epoch without."""

    def __init__(self, loader: Loader, work: Work, *, kills: bool) -> None:
        self._loader, self._work, self._kills = loader, work, kills
        self.note = f"{len(work.dataset.at)} kills in {work.batches} batches" if kills else ""
        check(loader, work)

    def go(self) -> float:
        return self._work.batches / self._epoch(self._kills)

    def _epoch(self, kills: bool) -> float:
        mine, at = self._work.dataset.mine, self._work.dataset.at
        for index in at if kills else ():
            mine.arm(index)
        began = time.perf_counter()
        check(self._loader, self._work)
        seconds = time.perf_counter() - began
        if kills and mine.armed():
            raise AssertionError(f"{mine.armed()} of {len(at)} kills did not happen")
        return seconds

    def close(self) -> None:
        self._loader.close()


class Recovery:
    """Each go is an epoch with one kill; the figure is the milliseconds from it to the batch that was lost by it."""

    def __init__(self, loader: Loader, work: Work) -> None:
        self._loader, self._work, self.note = loader, work, ""
        self._places = itertools.cycle(sorted(work.dataset.at)[::10])  # another sample each time
        check(loader, work)

    def go(self) -> float:
        mine, place, there, numbers = self._work.dataset.mine, next(self._places), 0.0, []
        mine.arm(place)
        for batch in self._loader:
            came = self._work.numbers(batch)
            if place in came:
                there = time.monotonic()
            numbers.extend(came)
        struck = mine.struck_at()
        if struck is None or sorted(numbers) != list(range(self._work.length)):
            raise AssertionError(f"{len(numbers)} samples of {self._work.length} came after the kill")
        return (there - struck) * 1000

    def close(self) -> None:
        self._loader.close()


def kept(turn: Turn) -> Kept:
    if turn.contender == CONTROL:
        open_, work = opening(Turn("holdfast", turn.settings, turn.quick, turn.directory))
        return Kept(open_(work), work, kills=False)
    _survives(turn)
    open_, work = opening(turn)
    return Kept(open_(work), work, kills=True)


def recovery(turn: Turn) -> Recovery:
    _survives(turn)
    open_, work = opening(turn)
    return Recovery(open_(work), work)


def _survives(turn: Turn) -> None:
    directory = Path(turn.directory)
    result = remembered(directory, turn.contender)
    if result is None:
        from bench.faults.watch import watched

        result = watched(turn.contender, "killed", QUICK_LIMIT if turn.quick else LIMIT)
        remember(directory, result)
    if result.outcome == "cannot":
        raise Cannot(result.text)
    if result.outcome != "finishes":
        raise Cannot(f"does not get through one kill ({result.outcome}: {result.text})")
