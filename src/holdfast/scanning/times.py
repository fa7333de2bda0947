"""How long samples took: a histogram with eight bins to the octave, and the slowest by name."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy

SHORTEST = 1e-6  # seconds; where the first bin begins
PER_OCTAVE = 8
SLOWEST = 20  # that are kept
FLOOR = 1.0  # seconds under which no sample is called slow,
RATIO = 10.0  # ... nor under so many times the median
CANDIDATES = 10_000  # that may turn out to be slow, before those are dropped that are not by what is known now


class Slow(NamedTuple):
    """``processor``: of the seconds, how many the worker was computing and not waiting."""

    position: int
    seconds: float
    processor: float


def binned(seconds: list[float]) -> dict[int, int]:
    """How many of these fall into which bin."""
    places = numpy.log2(numpy.maximum(numpy.array(seconds), SHORTEST) / SHORTEST) * PER_OCTAVE
    found, counts = numpy.unique(places.astype(numpy.int64), return_counts=True)
    return dict(zip(found.tolist(), counts.tolist()))


def seconds_of(place: float) -> float:
    """Where a bin begins."""
    return float(SHORTEST * 2.0 ** (place / PER_OCTAVE))


class Times:
    """Of all samples that were read."""

    def __init__(self) -> None:
        self.bins: Counter[int] = Counter()
        self._slowest: list[tuple[float, Slow]] = []  # a heap
        self._candidates: list[Slow] = []

    def add(self, bins: Mapping[int, int], slow: Iterable[Slow]) -> None:
        self.bins.update(bins)
        for one in slow:
            heapq.heappush(self._slowest, (one.seconds, one))
            if one.seconds > FLOOR:
                self._candidates.append(one)
        if len(self._candidates) > CANDIDATES:
            self._candidates = self.slow()
        while len(self._slowest) > SLOWEST:
            heapq.heappop(self._slowest)

    def quantile(self, share: float) -> float:
        """Right to within a bin: 9 %."""
        left = share * self.bins.total()
        for place, count in sorted(self.bins.items()):
            left -= count
            if left <= 0:
                return seconds_of(place + 0.5)
        return 0.0

    def limit(self) -> float:
        """What takes longer is slow."""
        return max(FLOOR, RATIO * self.quantile(0.5))

    def slow(self) -> list[Slow]:
        limit = self.limit()
        return sorted((one for one in self._candidates if one.seconds > limit), key=lambda one: -one.seconds)

    def slowest(self) -> list[Slow]:
        return [one for _, one in sorted(self._slowest, reverse=True)]

    def histogram(self) -> list[tuple[float, float | None, int]]:
        """(from, to, how many), two to the decade. The last has no end."""
        edges = [float(f"{mantissa}e{power}") for power in range(-6, 4) for mantissa in (1, 3)]
        counts: Counter[int] = Counter()
        for place, count in self.bins.items():
            middle = seconds_of(place + 0.5)
            counts[sum(edge <= middle for edge in edges) - 1] += count
        if not counts:
            return []
        places = range(max(0, min(counts)), max(counts) + 1)
        return [(edges[at], edges[at + 1] if at + 1 < len(edges) else None, counts[at]) for at in places]

    def saved(self) -> dict[str, Any]:
        slowest = [one for _, one in self._slowest]
        return {"bins": list(self.bins.items()), "slowest": slowest, "slow": self._candidates}

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> Times:
        made = cls()
        made.bins = Counter(dict(saved["bins"]))
        made._slowest = [(one[1], Slow(*one)) for one in saved["slowest"]]
        heapq.heapify(made._slowest)
        made._candidates = [Slow(*one) for one in saved["slow"]]
        return made
