"""A set of whole numbers that is mostly made of long runs, and small for that reason."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator


class Ranges:
    """Sorted runs that neither touch nor overlap."""

    def __init__(self, runs: Iterable[tuple[int, int]] = ()) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []
        for start, stop in runs:
            self.add(start, stop)

    def add(self, start: int, stop: int) -> None:
        """All from ``start`` up to ``stop``, without that."""
        if start >= stop:
            return
        first, last = bisect_left(self._stops, start), bisect_right(self._starts, stop)  # runs that it touches
        if first < last:
            start, stop = min(start, self._starts[first]), max(stop, self._stops[last - 1])
        self._starts[first:last], self._stops[first:last] = [start], [stop]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._starts, self._stops)

    def __len__(self) -> int:
        """How many numbers are in it."""
        return sum(self._stops) - sum(self._starts)

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self._starts, number) - 1
        return place >= 0 and number < self._stops[place]

    def gaps(self, end: int) -> Iterator[tuple[int, int]]:
        """The runs between 0 and ``end`` that are not in it."""
        begin = 0
        for start, stop in list(self):
            if begin < min(start, end):
                yield begin, min(start, end)
            begin = stop
        if begin < end:
            yield begin, end
