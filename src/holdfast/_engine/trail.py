"""How far each worker's stream is: as it was delivered, and as its worker has answered.

A stream is known by its last state, where the data set keeps one, and by the batches since then, which are gone through
again. What a new life of the worker, or another run, has to know of it is a ``Past``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from holdfast._transport.messages import NO_PAST, Mark, Past, Unsaved

from .streams import History

BACK = 8  # deliveries that can be asked for again


class Point(NamedTuple):
    """A place in one stream, behind this many batches and items; and the last state before it, with its own place."""

    batches: int = 0
    items: int = 0
    digest: int = 0
    state: tuple[Any, Any] | None = None
    state_batches: int = 0
    state_items: int = 0
    state_digest: int = 0
    unsaved: Unsaved | None = None  # a state that could not be had
    over: bool = False  # nothing comes after it

    def after(self, mark: Mark | None) -> Point:
        """One batch on."""
        if mark is None:
            return self._replace(batches=self.batches + 1)
        behind = self._replace(batches=self.batches + 1, items=mark.items, digest=mark.digest, over=mark.over)
        return behind.at(mark.state)

    def at(self, state: State) -> Point:
        """Here, with the state that was taken here, if any was."""
        if state is None:
            return self
        if isinstance(state, Unsaved):
            return self._replace(unsaved=state)
        return self._replace(
            state=state,
            state_batches=self.batches,
            state_items=self.items,
            state_digest=self.digest,
            unsaved=None,
        )

    def past(self, **known: Any) -> Past:
        if not self.batches and self.state is None:
            return NO_PAST._replace(**known)
        since = self.batches - self.state_batches
        return Past(self.batches, since, self.state, self.state_items, self.state_digest, self.digest, **known)


START = Point()
State = tuple[Any, Any] | Unsaved | None
Dealt = tuple[tuple[int, tuple[int, ...]], ...]


class Trail:
    """Owned by an epoch of streams. Batches are numbered within the epoch: the k-th of seat s is k * seats + s."""

    def __init__(
        self,
        seats: int,
        history: Callable[[int], History],
        points: Sequence[Point] = (),
        dealt: Dealt = (),
    ) -> None:
        self._seats, self._history, self.dealt = max(1, seats), history, dealt
        self.points = list(points) or [START] * self._seats  # delivered, by seat
        self._answered: dict[int, Point] = {}  # by batch: behind it
        self._ends: dict[int, tuple[int, State]] = {}  # by seat: of how many batches, and in what state it left off
        self._begun = {seat for seat, point in enumerate(self.points) if point is not START}
        self.recent = deque([tuple(self.points)], maxlen=BACK + 1)

    @property
    def begun(self) -> bool:
        """Whether it is known of every stream where it began."""
        return len(self._begun) == self._seats

    @property
    def given(self) -> tuple[int, ...]:
        return tuple(point.batches for point in self.points)

    @property
    def ended(self) -> frozenset[int]:
        """Seats all of whose batches are delivered, as far as that is known."""
        ends = {seat for seat, (end, _) in self._ends.items() if self.points[seat].batches >= end}
        return frozenset(ends | {seat for seat, point in enumerate(self.points) if point.over})

    def begin(self, seat: int, mark: Mark) -> None:
        if not self.points[seat].batches:
            self.points[seat] = START.at(mark.state)
            self.recent[-1] = tuple(self.points)
        self._begun.add(seat)

    def answer(self, batch: int, mark: Mark | None) -> None:
        """A worker is behind this batch."""
        self._answered[batch] = self._behind(batch - self._seats).after(mark)

    def end(self, batch: int, mark: Mark | None) -> None:
        """A stream has no such batch."""
        self._ends[batch % self._seats] = batch // self._seats, mark.state if mark is not None else None

    def deliver(self, batch: int) -> None:
        seat = batch % self._seats
        self.points[seat] = self._answered.pop(batch) if batch in self._answered else self.points[seat].after(None)
        self.recent.append(tuple(self.points))

    def past(self, seat: int, batches: int) -> Past:
        """What a worker has to know that is to go on behind so many batches, answered or delivered."""
        point, history = self._behind((batches - 1) * self._seats + seat), self._history(seat)
        if point.over or (seat in self.ended and batches >= point.batches):
            return self._left_off(seat, point).past(over=True)
        return point.past(failed=history.failed, taken_out=history.taken_out, dealt=self.dealt)

    def history(self, seat: int, upto: Point) -> dict[str, list[int]]:
        """What failed in this stream before this point; of nothing, nothing."""
        failed, *items = self._history(seat)
        told = {"failed": [batch for batch in failed if batch < upto.batches]}
        for name, those in zip(("taken_out", "skipped"), items):
            told[name] = [item for item in those if item < upto.items]
        return {name: those for name, those in told.items() if those}

    def left_out_ahead(self) -> int:
        """How many items were left out of batches that are not delivered."""
        ahead = 0
        for seat, point in enumerate(self.points):
            _, *left_out = self._history(seat)
            ahead += sum(item >= point.items for items in left_out for item in items)
        return ahead

    def left_off(self) -> list[Point]:
        """Of streams that have ended: where the next epoch begins, with the state in which each left its data set."""
        return [self._left_off(seat, point) for seat, point in enumerate(self.points)]

    def _left_off(self, seat: int, last: Point) -> Point:
        state = self._ends[seat][1] if seat in self._ends else last.state
        if not isinstance(state, tuple):
            return START.at(state)
        return START.at((state[0], None)) if state[0] is not None else START  # an iterator serves one epoch

    def _behind(self, batch: int) -> Point:
        return self._answered[batch] if batch in self._answered else self.points[batch % self._seats]
