"""What can happen to a loader: every input of the machine, as a plain value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

# Events and commands are not frozen: a frozen dataclass takes 0.5 µs longer to make, which a loader of tiny batches
# pays several times a batch. Nobody changes one all the same.


class Worker(NamedTuple):
    """One process: the seat it fills (what torch calls ``worker_id``) and which life of that seat it is."""

    seat: int
    life: int


@dataclass(slots=True)
class EpochBegan:
    """The user asked for an iterator. The first one starts the crew; a later one forgets the epoch before it.

    The fields say what an earlier run has given of it: the epoch goes on behind that. All numbers count within the
    epoch. Processes that are there already are told by the engine; those to be started, by ``Start.skip``.
    """

    start: int = 0  # free: the lowest batch that was not given
    done: frozenset[int] = frozenset()  # free: batches above it that were given, not in order
    given: tuple[int, ...] = ()  # bound: how many batches of its stream each seat has given; () for none
    ended: frozenset[int] = frozenset()  # bound: seats whose stream is over


@dataclass(slots=True)
class Drawn:
    """The sampler gave ``count`` more batches."""

    count: int


@dataclass(slots=True)
class SamplerEnded:
    """The sampler has no more batches in this epoch."""


@dataclass(slots=True)
class WorkerReady:
    """The process is up, has its dataset, and can be sent work."""

    who: Worker


@dataclass(slots=True)
class BatchReady:
    """A batch was loaded, or failed with an exception: a result either way. ``size`` is what it occupies."""

    who: Worker
    batch: int
    size: int


@dataclass(slots=True)
class StreamEnded:
    """Bound mode, in answer to a ``Send``: this worker's stream has no ``batch``, nor any later one, in this epoch."""

    who: Worker
    batch: int


@dataclass(slots=True)
class WorkerExited:
    """The process is gone. What its logbook says it was on: a batch, and the position of the sample in that batch.

    ``hung``: we ended it because it did not come to an end with that; no second death is needed to know.
    """

    who: Worker
    batch: int | None
    sample: int | None
    hung: bool = False


@dataclass(slots=True)
class BatchFailed:
    """Free mode: the batch could not be loaded as it was asked for, and is to be tried again, not before ``again_at``.

    What to change about it, and whether to try at all, is decided elsewhere, by the user's policy.
    """

    who: Worker
    batch: int
    again_at: float


@dataclass(slots=True)
class Pardoned:
    """In answer to ``Condemn``: the batch is to be tried again, not before ``again_at``."""

    batch: int
    again_at: float


@dataclass(slots=True)
class Sentenced:
    """In answer to ``Condemn``: the error stands in place of the batch, and is delivered in its turn like any other.

    Bound mode: nobody can load what lies behind it, so the stream ends there.
    """

    batch: int


@dataclass(slots=True)
class Outgrown:
    """The process has taken more memory than it may: it is to be replaced when it has done what is on its hands."""

    who: Worker


@dataclass(slots=True)
class Wanted:
    """The user called ``next()`` and waits."""


@dataclass(slots=True)
class Ticked:
    """Time passed and nothing else happened."""


@dataclass(slots=True)
class Closed:
    """The user, or the interpreter, is done with the loader."""


Event = (
    Wanted
    | Drawn
    | BatchReady
    | Ticked
    | BatchFailed
    | WorkerReady
    | WorkerExited
    | Pardoned
    | Sentenced
    | Outgrown
    | StreamEnded
    | SamplerEnded
    | EpochBegan
    | Closed
)
