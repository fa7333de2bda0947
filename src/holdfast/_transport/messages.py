"""Every message between the trainer and a worker, one class each.

Packed as a plain tuple with a tag in front: a third of the cost of pickling the class itself, and the hot ones pass
twice for every batch.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

import cloudpickle

from .layout import Layout
from .parcels import Packed


class Past(NamedTuple):
    """What a worker's stream has given to an earlier life or an earlier run, and how to get to where it goes on.

    The data set takes up ``state``, or begins anew, and goes once more through the last ``since`` of those ``batches``.
    ``items`` and ``digest`` are as they were at that state; ``expected`` is what the digest has to be afterwards.
    """

    batches: int = 0
    since: int = 0
    state: tuple[Any, Any] | None = None
    items: int = 0
    digest: int = 0
    expected: int = 0
    failed: tuple[int, ...] = ()  # batches that ended in an error
    taken_out: tuple[int, ...] = ()  # items that were fetched and left out of their batch
    dealt: tuple[tuple[int, tuple[int, ...]], ...] = ()  # among how many workers, and what each took, in earlier runs
    over: bool = False  # nothing is left of it in this epoch; ``state`` is for the next one


NO_PAST = Past()


class Begin(NamedTuple):
    """Trainer: a new epoch, or the rest of one. Forget work of the old one.

    Batch b has the random numbers of ``b * stride + shift``: ranks that deal out one order among them count all of
    their batches as one.
    """

    first: int
    seed: int
    shared_seed: int | None
    changes: bytes | None = None  # of the data set's attributes, since this worker's copy was made
    stride: int = 1
    shift: int = 0
    past: Past = NO_PAST


class Unsaved(NamedTuple):
    """The data set's state could not be had, and why: a packed exception."""

    error: bytes


class Mark(NamedTuple):
    """How far a stream is: items behind it, a digest of what it gave, its own state if that was taken here.

    ``over``: nothing comes after it. A stream that ends in the middle of a batch knows that.
    """

    items: int
    digest: int
    state: tuple[Any, Any] | Unsaved | None
    over: bool = False


class Plan(NamedTuple):
    """The index of a batch that met a fault: some of its samples are given, not fetched.

    ``careful``: the batch ended its worker and nobody knows by which sample; take them one by one and note each.
    """

    indices: list[Any]
    given: dict[int, Any]
    careful: bool
    attempt: int = 1


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
    mark: Mark | None = None  # of a stream


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
    mark: Mark | None = None


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
    mark: Mark | None = None


class Began(NamedTuple):
    """Worker: my stream, of the epoch whose first batch this is, is where it is to begin."""

    first: int
    mark: Mark


class StreamOver(NamedTuple):
    """Worker: my stream has no such batch, nor any later one in this epoch."""

    batch: int
    mark: Mark | None = None


Items = tuple[int, int] | list[int]  # from one up to another, or some


def shortened(items: Sequence[int]) -> Items:
    """For a message: a range takes 4 µs to pickle, and as long to unpickle."""
    return (items.start, items.stop) if isinstance(items, range) else list(items)


def in_full(items: Items) -> Sequence[int]:
    return range(*items) if type(items) is tuple else items


class Kit(NamedTuple):
    """Parent: what tasks are done with, and refer to by its number: a function, how it is called, and its resource."""

    kit: int
    packed: Packed


class Drop(NamedTuple):
    """Parent: no task will refer to this kit any more."""

    kit: int


class Task(NamedTuple):
    """Parent: call the function with these of the items that are in the parcel, in order.

    ``turn`` is its number among all that this life was sent, for what is recalled (`tasks.recalls`).
    ``first`` is where the parcel begins: the number of its first item among all of the call; ``base``, the number of
    item 0 in the life of the pool, for the seeds. ``plain``: items are of built-in types. ``timed``: note each one in
    the logbook, also when they are short; ``alone``: hand each result over before the next is begun. ``private``: the
    parcel may be needed again, as it is.
    """

    task: int
    turn: int
    kit: int
    packed: Packed
    first: int
    todo: Items
    base: int
    plain: bool
    timed: bool
    alone: bool
    private: bool
    freed: tuple[int, ...]


class PassedOver(NamedTuple):
    """Worker: this task was recalled, and has not been begun."""

    task: int
    turn: int
    freed: tuple[int, ...]


class Did(NamedTuple):
    """Worker: the results for these items, None where there is an error; ``over``: the task is done.

    ``errors`` are packed exceptions, by item. ``freed`` are blocks that arguments lay in.
    """

    task: int
    items: Items
    packed: Packed
    errors: list[tuple[int, bytes]]
    over: bool
    seconds: float
    freed: tuple[int, ...]


class Noticed(NamedTuple):
    """Worker, once: fingerprints of my first items, and the generators (path, kind, state) that were drawn from."""

    items: list[int | None]
    drawn: list[tuple[str, str, int]]


class Prompted(NamedTuple):
    """Worker: a debugger of mine says this, of which the last line is its prompt, and waits. ``place`` is file:line."""

    text: str
    place: str


class Released(NamedTuple):
    """Worker: my debugger has let the program go on."""


class Typed(NamedTuple):
    """Trainer: a line for a debugger, as ``readline`` gives it. None: there is nobody who could type."""

    line: str | None
    interrupted: bool = False


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
    | Began
    | Kit
    | Drop
    | Task
    | PassedOver
    | Did
    | Prompted
    | Released
    | Typed
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
    Began,
    Kit,
    Drop,
    Task,
    PassedOver,
    Did,
    Prompted,
    Released,
    Typed,
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
