"""Every message between the trainer and a worker, one class each.

Packed as a plain tuple with a tag in front: a third of the cost of pickling the class itself, and the hot ones pass
twice for every batch.
"""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import cloudpickle

from .codec import Layout


class Begin(NamedTuple):
    """Trainer: a new epoch. Forget work of the old one; an iterable worker replays ``skip`` batches of its stream.

    Of those, ``failed`` ended in an error, and the items ``taken_out`` were fetched and left out of their batch.
    """

    first: int
    seed: int
    shared_seed: int | None
    skip: int
    changes: bytes | None = None  # of the data set's attributes, since this worker's copy was made
    failed: tuple[int, ...] = ()
    taken_out: tuple[int, ...] = ()


class Plan(NamedTuple):
    """The index of a batch that met a fault: some of its samples are given, not fetched.

    ``careful``: the batch ended its worker and nobody knows by which sample; take them one by one and note each.
    """

    indices: list[Any]
    given: dict[int, Any]
    careful: bool


class Load(NamedTuple):
    """Trainer: load this batch. ``freed`` are blocks of the arena that are free again."""

    batch: int
    index: Any
    freed: tuple[int, ...]


class Close(NamedTuple):
    """Trainer: finish and exit."""


class Ready(NamedTuple):
    """Worker: unpacked, initialised, waiting for work."""


class InitFailed(NamedTuple):
    """Worker: could not get ready. ``error`` is a packed exception; from a thread, the exception itself."""

    error: bytes | BaseException


class Extended(NamedTuple):
    """Worker: my arena has one more extent."""

    base: int
    size: int


class Loaded(NamedTuple):
    """Worker: the batch lies in these blocks of my arena (or here, inline)."""

    batch: int
    number: int
    layout: Layout | None
    blocks: list[tuple[int, int]]
    inline: bytes | None


class Report(NamedTuple):
    """Worker: what failed. ``place`` is the sample's position in the batch; None when it was the batch as a whole."""

    place: int | None
    error: bytes | BaseException
    where: str  # path or other description of the sample
    detail: str  # the transform that failed, and on what
    fatal: bool  # an error of the program, not of the sample
    whole: bool  # it failed when the batch was put together
    item: int | None = None  # of a stream: which one


class Raised(NamedTuple):
    """Worker: the batch failed, for these reasons."""

    batch: int
    reports: list[Report]


class Asked(NamedTuple):
    """Worker: this item of my stream raised, or goes into no batch. I wait to be told whether to go on."""

    batch: int
    report: Report


class Answered(NamedTuple):
    """Trainer: "raise", "skip", "again" or "put" (the value in its place), after a while."""

    action: str
    after: float
    value: Any


class Handed(NamedTuple):
    """Worker thread: here is the batch itself."""

    batch: int
    value: Any


class StreamOver(NamedTuple):
    """Worker: my stream has no such batch, nor any later one in this epoch."""

    batch: int


class Noticed(NamedTuple):
    """Worker, once: fingerprints of my first items, and the generators (path, kind, state) that were drawn from."""

    items: list[int | None]
    drawn: list[tuple[str, str, int]]


Message = (
    Begin
    | Load
    | Answered
    | Close
    | Ready
    | InitFailed
    | Extended
    | Loaded
    | Handed
    | Raised
    | Asked
    | StreamOver
    | Noticed
)

_KINDS: tuple[type[Any], ...] = (
    Begin,
    Load,
    Close,
    Ready,
    InitFailed,
    Extended,
    Loaded,
    Raised,
    StreamOver,
    Asked,
    Answered,
    Noticed,
)
_TAGS = {kind: tag for tag, kind in enumerate(_KINDS)}


def pack(message: Message) -> bytes:
    plain = (_TAGS[type(message)], *message)
    try:
        return pickle.dumps(plain, protocol=5)
    except Exception:
        # A sampler may yield anything, also objects of a class that only cloudpickle can carry.
        return bytes(cloudpickle.dumps(plain, protocol=5))


def unpack(data: bytes) -> Message:
    tag, *fields = pickle.loads(data)
    message: Message = _KINDS[tag](*fields)
    return message
