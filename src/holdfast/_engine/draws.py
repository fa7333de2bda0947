"""What the sampler gives in one epoch: numbered from 0, and remembered for as long as somebody may ask."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from holdfast._core.refill import NEIGHBOURS
from holdfast._worker.fetch import listed


class Draws:
    """Owned by an iterator. ``draw`` is the sampler's ``__next__``; ``lists``: what it gives is a batch of indices."""

    def __init__(self, draw: Callable[[], Any], *, lists: bool = True) -> None:
        self._draw, self._lists = draw, lists
        self._ahead: deque[Any] = deque()  # taken from the sampler before their time, as neighbours
        self._error: BaseException | None = None  # met on the way there, and told when it is due
        self._delivered: dict[int, Any] = {}  # as far as they are neighbours of any that is not
        self.indices: dict[int, Any] = {}  # of the batches that are not delivered
        self.places: Any = None  # of a stream: what stands for the indices of any batch
        self.count = 0
        self.failure: BaseException | None = None  # of the sampler, to be told when all before it was delivered

    def take(self, count: int, told: Callable[[int, Any], None]) -> tuple[int, bool]:
        """Up to ``count`` more, each ``told``; how many there were, and whether that is the end."""
        for taken in range(count):
            try:
                index = self.next()
            except StopIteration:
                return taken, True
            except Exception as error:
                self.failure = error
                return taken, True
            told(self.count - 1, index)
        return count, False

    def next(self) -> Any:
        """One more; what the sampler raises, ``StopIteration`` too, comes through."""
        if self._ahead:
            index = self._ahead.popleft()
        elif self._error is not None:
            raise self._error
        else:
            index = self._draw()
        self.indices[self.count] = index
        self.count += 1
        return index

    def forget_all_but(self, number: int, places: Any) -> None:
        """Of a stream: one is like the other."""
        self.places = places
        self.indices.clear()

    def deliver(self, batch: int) -> Any:
        """This batch is done with; returns what was drawn for it."""
        index = self._delivered[batch] = self.indices.pop(batch)
        oldest = next(iter(self.indices), self.count) - NEIGHBOURS
        while (first := next(iter(self._delivered), oldest)) < oldest:
            del self._delivered[first]
        return index

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
        for drawn in (self.indices, self._delivered):
            if number in drawn:
                return self._listed(drawn[number])
        return []

    def _look_ahead(self, place: int) -> bool:
        while len(self._ahead) <= place and self._error is None:
            try:
                self._ahead.append(self._draw())
            except Exception as error:
                self._error = error
        return len(self._ahead) > place

    def _listed(self, index: Any) -> list[Any]:
        return listed(index) if self._lists else [index]
