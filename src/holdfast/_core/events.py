"""What can happen to a loader: every input of the machine, as a plain value."""

from __future__ import annotations

from dataclasses import dataclass

# Events and commands are not frozen: a frozen dataclass takes 0.5 µs longer to make, which a loader of tiny batches
# pays several times a batch. Nobody changes one all the same.


@dataclass(frozen=True, slots=True)
class Worker:
    """One process: the seat it fills (what torch calls ``worker_id``) and which life of that seat it is."""

    seat: int
    life: int


@dataclass(slots=True)
class EpochBegan:
    """The user asked for an iterator. The first one starts the crew; a later one forgets the epoch before it."""


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
    """The process is gone. What its logbook says it was on: a batch, and the position of the sample in that batch."""

    who: Worker
    batch: int | None
    sample: int | None


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
    Wanted | Drawn | BatchReady | Ticked | WorkerReady | WorkerExited | StreamEnded | SamplerEnded | EpochBegan | Closed
)
