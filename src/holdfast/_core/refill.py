"""Which sample takes the place of one that was skipped.

A function of the epoch's seed, the batch and the place in it, so it is the same for any number of workers and after
any crash. It comes from what the sampler chooses from, where that is known; a sampler that chooses a part of the data
set must not be given samples of the rest (they may be the validation set). Where it is not known, from the
neighbourhood: the batch itself, those before it, those that come after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from .mixing import mix

TRIES = 64  # random choices before all are looked at in turn
LOOKED_AT = 4096
NEIGHBOURS = 8  # batches before and after
_OWN_SEQUENCE = 0x5EEDF111  # not the numbers that seed the batches


class Refill:
    """Made for one epoch. ``population``: what the sampler chooses from; None when nobody knows."""

    def __init__(
        self,
        seed: int,
        population: Sequence[Any] | None,
        before: Callable[[int, int], Iterable[Any]],
        after: Callable[[int, int], Iterable[Any]],
    ) -> None:
        self._seed, self._population = seed ^ _OWN_SEQUENCE, population
        self._before, self._after = before, after

    def choose(self, batch: int, place: int, own: Sequence[Any], fits: Callable[[Any], bool]) -> Any:
        """An index that ``fits`` for this place of the batch; LookupError when there is none.

        ``own``: the other indices of the batch. They are repeated only when nothing else is left.
        """
        spare = None
        for index in self._candidates(mix(self._seed, batch * 65537 + place), batch):
            if not fits(index):
                continue
            if index not in own:
                return index
            spare = (index,) if spare is None else spare
        return spare[0] if spare else self.repeat(batch, place, own, fits)

    def repeat(self, batch: int, place: int, own: Sequence[Any], fits: Callable[[Any], bool]) -> Any:
        """One of the batch's own indices; LookupError when none fits."""
        good = [index for index in own if fits(index)]
        if not good:
            raise LookupError("there is no sample to take its place")
        return good[mix(self._seed, batch * 65537 + place) % len(good)]

    def _candidates(self, seed: int, batch: int) -> Iterator[Any]:
        population = self._population
        if population is None:
            yield from self._before(batch, NEIGHBOURS)
            yield from self._after(batch, NEIGHBOURS)
            return
        size = len(population)
        if not size:
            return
        yield from (population[mix(seed, number) % size] for number in range(TRIES))
        yield from (population[(seed + number) % size] for number in range(min(size, LOOKED_AT)))
