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
    """Trainer: a new epoch. Forget work of the old one; an iterable worker replays ``skip`` batches of its stream."""

    first: int
    seed: int
    shared_seed: int | None
    skip: int


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


class Raised(NamedTuple):
    """Worker: the batch failed with this exception, at the sample in this position (-1: not known)."""

    batch: int
    sample: int
    error: bytes | BaseException


class Handed(NamedTuple):
    """Worker thread: here is the batch itself."""

    batch: int
    value: Any


class StreamOver(NamedTuple):
    """Worker: my stream has no such batch, nor any later one in this epoch."""

    batch: int


Message = Begin | Load | Close | Ready | InitFailed | Extended | Loaded | Handed | Raised | StreamOver

_KINDS: tuple[type[Any], ...] = (Begin, Load, Close, Ready, InitFailed, Extended, Loaded, Raised, StreamOver)
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
