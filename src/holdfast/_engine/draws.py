"""What the sampler gives in one epoch: numbered from 0, and remembered for as long as somebody may ask."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from holdfast._core.refill import NEIGHBOURS


class Draws:
    """Owned by an iterator. ``draw`` is the sampler's ``__next__``."""

    def __init__(self, draw: Callable[[], Any]) -> None:
        self._draw = draw
        self._ahead: deque[Any] = deque()  # taken from the sampler before their time, as neighbours
        self._error: BaseException | None = None  # met on the way there, and told when it is due
        self._recent: deque[tuple[int, Any]] = deque(maxlen=NEIGHBOURS)
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
        index = self.indices.pop(batch)
        self._recent.append((batch, index))
        return index

    def before(self, batch: int, count: int) -> Iterator[Any]:
        """The indices of up to ``count`` batches before this one, the nearest first."""
        known = {**dict(self._recent), **self.indices}
        for number in range(batch - 1, batch - 1 - count, -1):
            yield from _listed(known.get(number))

    def after(self, batch: int, count: int) -> Iterator[Any]:
        """The same for those behind it, which are taken from the sampler if need be."""
        for number in range(batch + 1, batch + 1 + count):
            if number in self.indices:
                yield from _listed(self.indices[number])
            elif number >= self.count and self._look_ahead(number - self.count):
                yield from _listed(self._ahead[number - self.count])

    def _look_ahead(self, place: int) -> bool:
        while len(self._ahead) <= place and self._error is None:
            try:
                self._ahead.append(self._draw())
            except Exception as error:
                self._error = error
        return len(self._ahead) > place


def _listed(index: Any) -> list[Any]:
    if index is None:
        return []
    return list(index) if isinstance(index, list | tuple) else [index]
