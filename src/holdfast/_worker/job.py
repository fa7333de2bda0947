"""What a worker is to do, as the trainer describes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .settings import Settings
from .sharding import Ranks


@dataclass(slots=True)
class Job:
    """The user's objects and how to use them. This is what is shipped to a crew."""

    dataset: Any
    collate_fn: Callable[[Any], Any]
    worker_init_fn: Callable[[int], object] | None
    iterable: bool
    auto_collation: bool
    drop_last: bool
    seats: int
    settings: Settings
    tolerant: bool = False  # a policy may leave samples out: all that fail are wanted, not the first
    collate_types: dict[Any, Callable[..., Any]] = field(default_factory=dict)  # what the user added to torch's map
    shard: Ranks | None = None  # whether a stream is divided here, and among whom
    snapshot_every: int = 1  # batches of a stream from one state of the data set's own to the next; 0: none


class Post(NamedTuple):
    """What one worker is told about itself, and the surroundings of the trainer it works for."""

    seat: int
    seats: int
    seed: int
    arena_limit: int | None
    environ: dict[str, str]
    cwd: str
    sys_path: list[str]
    argv: list[str]
    measures_memory: bool = False  # and notes it in the logbook
    tells_items: bool = False  # of its stream, the first
    tells_random: bool = False  # generators of the data set that were drawn from
