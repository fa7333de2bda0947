"""Epochs for a simulated world: what there is to load, and what of it an earlier run has given."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from .._core.events import EpochBegan
from .._core.limits import Limits

ENDLESS = 10**9  # as torch's sampler for an iterable dataset


@dataclass(frozen=True, slots=True)
class Epoch:
    """``length`` batches in the sampler, and in the stream of each seat as many as ``streams`` says."""

    length: int
    streams: tuple[int, ...]
    began: EpochBegan

    @property
    def drawn(self) -> int:
        """What the sampler has given to the earlier run, as far as it matters to this one."""
        return self.began.start + sum(self.began.given)

    @property
    def left(self) -> list[int]:
        """Free: the batches that are to be given, counted within the epoch."""
        return [batch for batch in range(self.began.start, self.length) if batch not in self.began.done]

    def given(self, seat: int) -> int:
        """Bound: how many batches of its stream are behind this seat."""
        return self.began.given[seat] if self.began.given else 0


def some_epoch(rng: Random, limits: Limits, longest: int) -> Epoch:
    """Of every length, more often than not from its beginning."""
    length = rng.choice([0, 1, rng.randint(0, longest), longest])
    if limits.bound and rng.random() < 0.7:
        length = ENDLESS
    streams = tuple(rng.choice([0, rng.randint(0, longest // 2)]) for _ in range(limits.seats))
    if rng.random() < 0.6:
        return Epoch(length, streams, EpochBegan())
    return _rest_of_streams(rng, length, streams) if limits.bound else _rest(rng, length, streams)


def _rest(rng: Random, length: int, streams: tuple[int, ...]) -> Epoch:
    start, often = rng.randint(0, length), rng.choice([0, 0.3, 0.9])
    done = frozenset(batch for batch in range(start + 1, length) if rng.random() < often)
    return Epoch(length, streams, EpochBegan(start=start, done=done))


def _rest_of_streams(rng: Random, length: int, streams: tuple[int, ...]) -> Epoch:
    """After a run in order, one round of all seats is cut somewhere; after one that was not, streams are anywhere."""
    if rng.random() < 0.5:
        rounds, more = rng.randint(0, max(streams)), rng.randrange(len(streams))
        given = tuple(min(stream, rounds + (seat < more)) for seat, stream in enumerate(streams))
    else:
        given = tuple(rng.randint(0, stream) for stream in streams)
    over = rng.choice([0, 0.3, 1])
    ended = frozenset(seat for seat in range(len(streams)) if rng.random() < over)  # some of them cut short by poison
    streams = tuple(given[seat] if seat in ended else stream for seat, stream in enumerate(streams))
    return Epoch(length + sum(given), streams, EpochBegan(given=given, ended=ended))
