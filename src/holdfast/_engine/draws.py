"""What the sampler gives in one epoch: numbered from 0, and remembered for as long as somebody may ask."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from holdfast._core.refill import NEIGHBOURS
from holdfast._worker.fetch import listed


class Draws:
    """Owned by an iterator. ``draw`` is the sampler's ``__next__``; ``lists``: what it gives is a batch of indices.

    ``start``: the number of the first one. ``before``: tells of some before that. ``done``: some after it that are done
    already. ``mark``: asked after each draw what is to be kept of the sampler; ``marks``: what is known of it before.
    """

    def __init__(
        self,
        draw: Callable[[], Any],
        *,
        lists: bool = True,
        start: int = 0,
        done: frozenset[int] = frozenset(),
        before: Callable[[], Iterable[Any]] = tuple,
        mark: Callable[[], Any] | None = None,
        marks: Mapping[int, Any] = MappingProxyType({}),
    ) -> None:
        self._draw, self._lists, self._mark = draw, lists, mark
        self._ahead: deque[Any] = deque()  # taken from the sampler before their time, as neighbours
        self._error: BaseException | None = None  # met on the way there, and told when it is due
        self._before = before if start else tuple
        self._delivered: dict[int, Any] = {}  # as far as they are neighbours of any that is not
        self._marks = dict(marks)  # of the sampler, by batch: behind it
        self._done = done
        self.indices: dict[int, Any] = {}  # of the batches that are not delivered
        self.places: Any = None  # of a stream: what stands for the indices of any batch
        self.start = self.count = start
        self.failure: BaseException | None = None  # of the sampler, to be told when all before it was delivered

    @property
    def position(self) -> tuple[int, frozenset[int]]:
        """The lowest number that is not delivered, and those above it that are."""
        lowest = next(iter(self.indices), self.count)
        done = {number for number in range(lowest, self.count) if number not in self.indices}
        return lowest, frozenset(done | {number for number in self._done if number >= self.count})

    def samples_since(self, batch: int) -> int:
        """How many samples were delivered with this batch and those after it."""
        return sum(len(self._listed(index)) for number, index in self._delivered.items() if number >= batch)

    def take(self, count: int, told: Callable[[int, Any], None]) -> tuple[int, bool]:
        """Up to ``count`` more, each ``told`` unless it is done; how many there were, and whether that is the end."""
        for taken in range(count):
            try:
                index = self.next()
            except StopIteration:
                return taken, True
            except Exception as error:
                self.failure = error
                return taken, True
            if not self._done or not self._is_done(self.count - 1):
                told(self.count - 1, index)
        return count, False

    def next(self) -> Any:
        """One more; what the sampler raises, ``StopIteration`` too, comes through."""
        if self._ahead:
            index = self._ahead.popleft()
        elif self._error is not None:
            raise self._error
        else:
            index = self._drawn(self.count)
        self.indices[self.count] = index
        self.count += 1
        return index

    def next_to_load(self) -> tuple[int, Any]:
        """The next one that is not done, with its number."""
        while True:
            index, number = self.next(), self.count - 1
            if not self._is_done(number):
                return number, index

    def _is_done(self, number: int) -> bool:
        """It was drawn, and an earlier run has given it."""
        if number not in self._done:
            return False
        self._delivered[number] = self.indices.pop(number)
        return True

    def mark_before(self, batch: int, back: int) -> tuple[Any, int]:
        """What is kept of the sampler where it was ``back`` batches before this one, or less; and how many it is."""
        if self._mark is None:
            return None, 0
        number = next(number for number in range(max(0, batch - back) - 1, batch) if number in self._marks)
        return self._marks[number], batch - 1 - number

    def forget_all_but(self, number: int, places: Any) -> None:
        """Of a stream: one is like the other."""
        self.places = places
        self.indices.clear()

    def deliver(self, batch: int) -> Any:
        """This batch is done with; returns what was drawn for it."""
        index = self._delivered[batch] = self.indices.pop(batch)
        if len(self._delivered) >= 2 * NEIGHBOURS:
            self._forget_far_ones()
        return index

    def _forget_far_ones(self) -> None:
        oldest = next(iter(self.indices), self.count) - NEIGHBOURS
        while (first := next(iter(self._delivered), oldest)) < oldest:
            del self._delivered[first]
            if self._mark is not None:
                self._marks.pop(first - 1, None)

    def before(self, batch: int, count: int) -> Iterator[Any]:
        """The indices of up to ``count`` batches before this one, the nearest first."""
        for number in range(batch - 1, batch - 1 - count, -1):
            yield from self._known(number)

    def after(self, batch: int, count: int) -> Iterator[Any]:
        """The same for those behind it, which are taken from the sampler if need be."""
        for number in range(batch + 1, batch + 1 + count):
            if number < self.count:
                yield from self._known(number)
            elif self._look_ahead(number - self.count):
                yield from self._listed(self._ahead[number - self.count])

    def _known(self, number: int) -> list[Any]:
        if number < self.start and self._before is not tuple:
            known, self._before = list(self._before()), tuple
            self._delivered = dict(enumerate(known, self.start - len(known))) | self._delivered
        for drawn in (self.indices, self._delivered):
            if number in drawn:
                return self._listed(drawn[number])
        return []

    def _look_ahead(self, place: int) -> bool:
        while len(self._ahead) <= place and self._error is None:
            try:
                self._ahead.append(self._drawn(self.count + len(self._ahead)))
            except Exception as error:
                self._error = error
        return len(self._ahead) > place

    def _drawn(self, number: int) -> Any:
        index = self._draw()
        if self._mark is not None:
            self._marks[number] = self._mark()
        return index

    def _listed(self, index: Any) -> list[Any]:
        return listed(index) if self._lists else [index]
