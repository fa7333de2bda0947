"""Who gets what of one global order: dealt like cards, step by step, to all ranks at once.

One step deals the next stretch of the order to all ranks in turn. So all that was given is the beginning of the order,
however many ranks there are, and how far that goes (`Deal.consumed`) is all there is to remember: other ranks, with
other batch sizes, go on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

Tail = Literal["pad", "drop", "exact"]
"""What becomes of the samples at the end that do not go round: see `Deal`."""
TAILS: tuple[Tail, ...] = get_args(Tail)


@dataclass(frozen=True)
class Deal:
    """Which positions of the global order one rank is dealt, from ``offset`` on; in as many steps as any other rank.

    ``offset`` is where an earlier run stopped; all that follows is about the samples from there on. ``tail``:

    - ``"pad"``: they are filled up to a multiple of ``world`` from the beginning of the order.
    - ``"drop"``: those beyond a multiple of ``world`` are left out.
    - ``"exact"``: each once, and no other. When too few are left for one per rank in the last step, the step before it
      gives up as many as are missing. Where that cannot be, it is a ``ValueError``.

    ``drop_last``: steps that are not full on every rank are left out.
    """

    size: int
    world: int
    rank: int
    batch_size: int
    tail: Tail = "pad"
    offset: int = 0
    drop_last: bool = False

    def __post_init__(self) -> None:
        _expect(self.size >= 0, "size", "at least 0", self.size)
        _expect(self.world >= 1, "world", "at least 1", self.world)
        _expect(0 <= self.rank < self.world, "rank", f"0 to {self.world - 1}", self.rank)
        _expect(self.batch_size >= 1, "batch_size", "at least 1", self.batch_size)
        check_tail(self.tail)
        _expect(0 <= self.offset <= self.size, "offset", f"0 to {self.size}", self.offset)
        if self._leaves_a_rank_empty:
            raise ValueError(self._why_not_exact)

    @cached_property
    def steps(self) -> int:
        return -(-self._dealt // self._full)

    def positions(self, step: int) -> Sequence[int]:
        """This rank's batch in that step, as positions in the global order: a range, unless it is padded."""
        return wrapped(range(self._end(step) + self.rank, self._end(step + 1), self.world), self.size)

    def consumed(self, steps: int) -> int:
        """How much of the global order is behind all ranks after so many steps: the ``offset`` to go on from."""
        return min(self._end(steps), self.size)

    def _end(self, steps: int) -> int:
        """Where so many steps end. The last one has at least one sample for each rank: only "exact" ever needs that."""
        if steps >= self.steps:
            return self.offset + self._dealt
        return self.offset + min(steps * self._full, self._dealt - self.world)

    @property
    def _full(self) -> int:
        return self.world * self.batch_size

    @cached_property
    def _dealt(self) -> int:
        """How many are dealt to all ranks together, padding included."""
        dealt = evened(self.size - self.offset, self.world, self.tail)
        return dealt - dealt % self._full if self.drop_last else dealt

    @property
    def _leaves_a_rank_empty(self) -> bool:
        return self._dealt % self.world > 0 and (self.batch_size == 1 or self._dealt < self.world)

    @property
    def _why_not_exact(self) -> str:
        left = f"the last {self._dealt}" if self.offset else "all"
        ways = [f"a world size of at most {self._dealt}"] if self._dealt < self.world else []
        ways += ["a batch_size of 2 or more"] if self.batch_size == 1 else []
        return (
            f"tail='exact' cannot deal {left} of {self.size} samples to {self.world} ranks in equally many batches of "
            f"batch_size={self.batch_size}, none of them empty. Use {' and '.join(ways)}, or tail='pad' (some samples "
            "are given twice) or tail='drop' (some are left out)"
        )


def evened(count: int, world: int, tail: Tail) -> int:
    """How many of ``count`` samples are given to so many ranks together, padding included."""
    match tail:
        case "pad":
            return -(-count // world) * world
        case "drop":
            return count // world * world
        case "exact":
            return count


def wrapped(positions: range, size: int) -> Sequence[int]:
    """Positions beyond the end of the order stand for its beginning, as often as needed."""
    if positions and positions[-1] >= size:
        return [position % size for position in positions]
    return positions


def check_tail(tail: str) -> None:
    _expect(tail in TAILS, "tail", f"one of {', '.join(map(repr, TAILS))}", tail)


def _expect(valid: bool, name: str, expected: str, value: object) -> None:
    if not valid:
        raise ValueError(f"{name} should be {expected}, but got {name}={value!r}")
