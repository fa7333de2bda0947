"""A worker's share of a stream that nobody else has divided: every n-th item."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

SHARDS = (None, "auto", "worker")


class Ranks(NamedTuple):
    """Among whom a stream is divided, beside the workers of one trainer."""

    rank: int = 0
    world: int = 1

    def share(self, stream: Iterator[Any], seat: int, seats: int) -> Share:
        return Share(stream, self.rank * seats + seat, self.world * seats)


class Share(Iterator[Any]):
    """Items ``first``, ``first + step``, … of a stream, each worker of each rank with a ``first`` of its own.

    No generator, which would end with the first exception: a stream may raise for one item and go on. An item that
    raised counts as one, so that all workers count alike. Whose it is tells of it; the others pass over it, unless it
    is the end of their stream as well.
    """

    def __init__(self, stream: Iterator[Any], first: int, step: int) -> None:
        self.stream = stream
        self._next = stream.__next__
        self._ends_with_an_error = isinstance(stream, Generator)
        self._others, self._step = first, step  # items that come before our next one

    def __next__(self) -> Any:
        while self._others:
            self._others -= 1
            self._pass()
        self._others = self._step - 1
        return self._next()

    def again(self) -> None:
        """The item that raised is the next one still."""
        self._others = 0

    def _pass(self) -> None:
        try:
            self._next()
        except StopIteration:
            raise
        except Exception:
            if self._ends_with_an_error:
                raise


def origin(stream: Iterator[Any]) -> Iterator[Any]:
    """What the user's data set gave."""
    return stream.stream if type(stream) is Share else stream
