"""A worker's share of a stream that nobody else has divided: every n-th item."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

SHARDS = (None, "auto", "worker")
Takings = Sequence[tuple[int, Sequence[int]]]


class Ranks(NamedTuple):
    """Among whom a stream is divided, beside the workers of one trainer."""

    rank: int = 0
    world: int = 1

    def share(self, stream: Iterator[Any], seat: int, seats: int, dealt: Takings = ()) -> Share:
        return Share(stream, self.rank * seats + seat, self.world * seats, dealt)


class Share(Iterator[Any]):
    """Items ``first``, ``first + step``, … of a stream, each worker of each rank with a ``first`` of its own.

    No generator, which would end with the first exception: a stream may raise for one item and go on. An item that
    raised counts as one, so that all workers count alike. Whose it is tells of it; the others pass over it, unless it
    is the end of their stream as well.

    ``dealt``: what earlier runs, with other numbers of workers, have taken. Only what they left is divided.
    """

    def __init__(self, stream: Iterator[Any], first: int, step: int, dealt: Takings = ()) -> None:
        self.stream = stream
        self._next = stream.__next__
        self._ends_with_an_error = isinstance(stream, Generator)
        self._others, self._step = first, step  # items that come before our next one
        self._dealt = [Dealt(*one) for one in dealt]

    def __next__(self) -> Any:
        while self._others:
            self._pass_taken()
            self._others -= 1
            self._pass()
        self._pass_taken()
        self._others = self._step - 1
        return self._next()

    def again(self) -> None:
        """The item that raised is the next one still."""
        self._others = 0
        for dealt in self._dealt:
            dealt.at -= 1

    def begun(self) -> None:
        """The stream stands behind an item of ours."""
        self._others = self._step - 1

    def _pass_taken(self) -> None:
        while any(dealt.has_next() for dealt in self._dealt):
            self._pass()

    def _pass(self) -> None:
        try:
            self._next()
        except StopIteration:
            raise
        except Exception:
            if self._ends_with_an_error:
                raise


class Dealt:
    """A stream as an earlier run divided it: worker w of ``step`` took its first ``counts[w]`` items.

    Ranks give the same number of batches, so the counts of one rank's workers stand for those of all.
    """

    def __init__(self, step: int, counts: Sequence[int]) -> None:
        self._step, self._counts, self.at = step, counts, 0

    def has_next(self) -> bool:
        """Whether it took the next item. It is counted with that: ask once for each."""
        turn, who = divmod(self.at, self._step)
        self.at += 1
        return turn < self._counts[who % len(self._counts)]


def origin(stream: Iterator[Any]) -> Iterator[Any]:
    """What the user's data set gave."""
    return stream.stream if type(stream) is Share else stream
