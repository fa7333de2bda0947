"""``imap``: results while there are more to come, with a bounded number of items on the way.

Items are taken from the user's iterable by whoever asks for a result, and in that thread; so an endless one is not
read further than is needed, and what it raises is raised there.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from multiprocessing import TimeoutError as NotInTime
from typing import Any

from .calls import Call
from .kits import Kit
from .turns import Turns
from .works import Works

_MISSING = object()
Results = Iterable[tuple[Any, "BaseException | None"]]


class Piece(Call):
    """Some items of an ``imap``."""

    def __init__(
        self, stream: Stream, kit: Kit, items: list[Any], shape: str, timeout: float | None, *, background: bool
    ) -> None:
        super().__init__(kit, items, shape, timeout, background=background)
        self._stream = weakref.ref(stream)  # who drops it wants no more of it
        self.values: list[Any] = [_MISSING] * len(items)
        self.errors: dict[int, BaseException] = {}
        self.missing = len(items)

    def settle(self, items: Sequence[int], values: list[Any], errors: Mapping[int, BaseException | None]) -> None:
        if not errors and isinstance(items, range):
            self.values[items.start : items.stop] = values
            self._settled(len(values), zip(values, repeat(None)))
            return
        settled: list[tuple[Any, BaseException | None]] = []
        for item, value in zip(items, values, strict=True):
            error = errors.get(item)
            if error is not None:
                self.errors[item] = error
            elif item in errors:
                continue  # it is tried again
            self.values[item] = value
            settled.append((value, error))
        self._settled(len(settled), settled)

    def _settled(self, count: int, results: Results) -> None:
        self.missing -= count
        stream = self._stream()
        if stream is not None:
            stream.arrived(results)


class Stream(Iterator[Any]):
    """Belongs to whoever iterates; has its kit kept. Dropped before its end, it withdraws what has not been sent."""

    def __init__(
        self,
        works: Works,
        turns: Turns,
        kit: Kit,
        items: Iterator[Any],
        shape: str,
        chunk: int,
        ahead: float,
        timeout: float | None,
        *,
        ordered: bool = True,
        background: bool = False,
    ) -> None:
        self._works, self._turns, self._kit, self._items, self._shape = works, turns, kit, items, shape
        self._chunk, self._ahead, self._timeout = chunk, ahead, timeout
        self._ordered, self._background = ordered, background
        self._pieces: deque[Piece] = deque()  # in order
        self._place = 0  # in the first of them
        self._arrived: deque[tuple[Any, BaseException | None]] = deque()  # in the order in which they came
        self._on_the_way = 0  # items without a result that was given to the user
        self._ended = False  # no more is taken from the iterable
        works.stream(opened=True)
        self._failure: Exception | None = None
        self._bell = threading.Condition()

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Any:
        return self.next()

    def next(self, timeout: float | None = None) -> Any:
        """The next result, or its error raised; ``multiprocessing.TimeoutError`` when it does not come in time."""
        self.wait(timeout)
        value, error = self._take()
        self._on_the_way -= 1
        if error is not None:
            raise error
        return value

    def wait(self, timeout: float | None = None) -> None:
        """Until the next one is there; what is raised in its place is raised."""
        if not self._ended:
            self.fill()
        if not self._on_the_way:
            failure, self._failure = self._failure, None
            raise failure or StopIteration
        if not self.ready():
            self._turns.wait_for(self, timeout)
            if not self.ready():
                raise NotInTime

    def whole_piece(self) -> list[Any]:
        """The next results, in order, if those of a piece are all there and none is an error; else nothing."""
        piece = self._pieces[0]
        if piece.missing or piece.errors or self._place:
            return []
        self._pieces.popleft()
        self._on_the_way -= len(piece.values)
        return piece.values

    def ready(self) -> bool:
        """Whether the next one is there."""
        if not self._ordered:
            return bool(self._arrived)
        return bool(self._pieces) and self._pieces[0].values[self._place] is not _MISSING

    def rest(self, seconds: float | None) -> None:
        with self._bell:
            self._bell.wait_for(self.ready, seconds)

    def arrived(self, results: Results) -> None:
        """Those of a piece that came together: who waits is told once, as that costs more than a small result."""
        with self._bell:
            if not self._ordered:
                self._arrived.extend(results)
            self._bell.notify_all()

    def close(self, error: BaseException | None = None) -> None:
        """No more of it is wanted. What has not begun has this error for a result."""
        self._end()
        for piece in self._pieces:
            self._works.withdraw(piece, error)
        if error is None:
            self._on_the_way = 0  # of those that have begun, the results go nowhere

    def take_all(self) -> None:
        """Have all of the items on the way: the pool is about to end."""
        self._ahead = math.inf
        self.fill()

    def __del__(self) -> None:
        if not self._works.closed:
            self.close()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._works.release(self._kit)
            self._works.stream(opened=False)
            self._turns.nudge()

    def fill(self) -> None:
        """Have as many on the way as are allowed."""
        while not self._ended and (not self._on_the_way or self._on_the_way + self._chunk <= self._ahead):
            items = self._more()
            if items:
                piece = Piece(self, self._kit, items, self._shape, self._timeout, background=self._background)
                self._pieces.append(piece)
                self._on_the_way += len(items)
                with self._works.lock:
                    self._works.submit(piece, len(items))
                self._turns.changed()
            if len(items) < self._chunk:
                self._end()

    def _more(self) -> list[Any]:
        """Of the user's items. What their iterator raises is raised in its turn, behind what it gave before."""
        items: list[Any] = []
        try:
            items.extend(islice(self._items, self._chunk))
        except Exception as error:
            self._failure = error
        return items

    def _take(self) -> Any:
        if not self._ordered:
            while self._pieces and not self._pieces[0].missing:
                self._pieces.popleft()
            return self._arrived.popleft()
        piece, place = self._pieces[0], self._place
        value, piece.values[place] = piece.values[place], None
        self._place += 1
        if self._place == len(piece.values):
            self._pieces.popleft()
            self._place = 0
        return value, piece.errors.get(place)
