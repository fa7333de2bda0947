"""What a worker is to do, as the trainer describes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from holdfast._system.segments import Segment
from holdfast._system.starts import LOADING
from holdfast._transport.channel import Channel
from holdfast._transport.logbook import Logbook

from .settings import Settings
from .sharding import Ranks

if TYPE_CHECKING:
    from holdfast.policies import Policy


class Serves(Protocol):
    """A worker in its process."""

    def initialise(self) -> None: ...

    def run(self) -> None:
        """Until it is told to close; ``EOFError`` when the trainer is gone."""
        ...


class Errand(Protocol):
    """What is shipped to a crew. It knows what kind of worker it needs."""

    seats: int
    modules: ClassVar[tuple[str, ...]]  # that each worker of this kind needs, and takes long to import
    parts: ClassVar[tuple[str, ...]]  # attributes that are the user's own, and may refuse to travel

    def worker(
        self, post: Post, channel: Channel, logbook: Logbook, segment: Segment, heard: Iterable[bytes]
    ) -> Serves: ...


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
    debugged: tuple[Policy, ...] = ()  # what has to have had its say before a sample that raises is debugged
    snapshot_every: int = 1  # batches of a stream from one state of the data set's own to the next; 0: none
    modules: ClassVar[tuple[str, ...]] = (LOADING,)
    parts: ClassVar[tuple[str, ...]] = ("dataset", "collate_fn", "worker_init_fn", "collate_types")

    def worker(
        self, post: Post, channel: Channel, logbook: Logbook, segment: Segment, heard: Iterable[bytes]
    ) -> Serves:
        from . import debugger
        from .line import Line
        from .worker import Worker  # which needs to know what a job is

        line = Line(channel, segment, post.arena_limit, heard)
        debugger.install(post.seat, line, logbook)
        return Worker(self, post, logbook, line)


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
