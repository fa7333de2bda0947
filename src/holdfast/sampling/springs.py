"""Where the numbers of an epoch come from: its seed, and the seed of its order.

torch draws them from a generator that others draw from as well, so that nobody could say, after a stop, what the next
epoch would have been. Here they are drawn from a copy of that generator, which is made when it is first met and
whenever it has been seeded anew. For the same seed they are torch's own, as long as nobody else draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from .generators import is_fresh

_REMEMBERED = 3  # seeds that a generator had in the runs of which this is the next


class Origin(NamedTuple):
    """A torch generator, seeded with ``seed``, after ``drawn`` numbers."""

    seed: int
    drawn: int = 0

    def generator(self) -> torch.Generator:
        made = torch.Generator().manual_seed(self.seed)
        for _ in range(self.drawn):
            draw(made)
        return made


class Spring:
    """The copy of one generator. In the epoch in which it is made, its numbers are those of the generator itself."""

    def __init__(self) -> None:
        self._origin: Origin | None = None
        self._copy: torch.Generator | None = None
        self._met: list[int] = []  # what the generator was seeded with when we saw it
        self.fresh: int | None = None  # the seed, in the epoch in which the generator came to us freshly seeded
        self.is_new = False  # the copy: this epoch's numbers are drawn from the generator itself

    def attend(self, generator: torch.Generator, *, resumed: bool = False) -> None:
        """Before an epoch, and before anybody draws for it. ``resumed``: what it was seeded with is of no account."""
        seed = generator.initial_seed()
        fresh = is_fresh(generator)
        self.is_new = not resumed and (self._origin is None or fresh or seed not in self._met)
        self.fresh = seed if self.is_new and fresh else None
        if self.is_new:
            self._origin, self._copy, self._met = (Origin(seed) if fresh else None), None, []
        if seed not in self._met:
            self._met.append(seed)

    def draw(self, generator: torch.Generator, own: int | None = None) -> int:
        """The next number. ``own``: somebody has drawn it from the generator already."""
        if not self.is_new:
            return self._next()
        number = draw(generator) if own is None else own
        if self._origin is None:
            self._origin = Origin(number)  # of numbers to come
        elif self.fresh is not None:
            self._next()
        return number

    @property
    def here(self) -> Origin:
        assert self._origin is not None
        return self._origin

    def saved(self) -> list[int]:
        return [*self.here, *self._met[-_REMEMBERED:]]

    @classmethod
    def of(cls, saved: Sequence[int]) -> Spring:
        spring = cls()
        spring._origin, spring._met = Origin(*saved[:2]), list(saved[2:])
        return spring

    def _next(self) -> int:
        assert self._origin is not None
        if self._copy is None:
            self._copy = self._origin.generator()
        self._origin = Origin(self._origin.seed, self._origin.drawn + 1)
        return draw(self._copy)

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_copy": None}


def draw(generator: torch.Generator) -> int:
    """As torch draws a seed."""
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())
