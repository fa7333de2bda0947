"""The ways to start a worker, behind one contract.

A launcher is made once for a crew, from the job and the posts of its seats, and asked for one berth at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from holdfast._system import spawn
from holdfast._system.process import Process
from holdfast._system.segments import MemfdSegment, NamedSegment, remove_named
from holdfast._system.stderr import above_standard
from holdfast._system.zygote import Zygote, ZygoteDied, begin, zygote
from holdfast._transport.culprit import find_culprit
from holdfast._transport.shipment import S, Shipment, equal, ship, try_to_ship, try_to_ship_by_name
from holdfast._worker.job import Errand, Job, Post
from holdfast.errors import CannotShip

from .berth import Berth, introduce, named_berth, pipe_berth

Posts = Callable[[int], Post]


class Launcher(Protocol):
    """Starts workers of one crew. Owns what they are handed. ``forks``: they are forks of this process.

    ``processes``: they are processes at all, which the kernel may end when memory is out.
    """

    forks: bool
    processes: bool

    def launch(self, seat: int) -> Berth: ...

    def close(self) -> None:
        """No more workers will be started."""
        ...


class FromZygote:
    """Forks of the clean process: as fast as fork, as safe as spawn."""

    forks, processes = False, True

    def __init__(self, job: Errand, posts: Posts) -> None:
        self._posts = posts
        self._first: Zygote | None = None  # from which its first worker came
        self._shipment = shipped(job, MemfdSegment.create("holdfast-shipment"))
        self.modules = [*job.modules, *self._shipment.modules]
        begin(self.modules)

    def launch(self, seat: int) -> Berth:
        shipment = self._shipment

        def fork(fds: list[int], stderr: int) -> Process:
            given = [*fds, shipment.segment.fd, *shipment.fds]
            try:
                return self._zygote().fork(given, stderr)
            except ZygoteDied:
                return self._zygote().fork(given, stderr)  # someone killed it; a new one was started

        berth = pipe_berth(fork)
        introduce(berth.channel, self._posts(seat), shipment.manifest)
        return berth

    def is_like(self, other: FromZygote) -> bool:
        """Whether workers of both begin alike: with the same job, and from a process with the same modules."""
        return self._first is other._zygote() and equal(self._shipment, other._shipment)

    def _zygote(self) -> Zygote:
        found = zygote(self.modules)
        self._first = self._first or found
        return found

    def close(self) -> None:
        self._shipment.close()


class Spawned:
    """New interpreters, one for each worker."""

    forks, processes = False, True

    def __init__(self, job: Errand, posts: Posts) -> None:
        self._posts, self._modules = posts, job.modules
        with above_standard():
            segment = MemfdSegment.create("holdfast-shipment")
        self._shipment = shipped(job, segment)

    def launch(self, seat: int) -> Berth:
        shipment = self._shipment
        given = [shipment.segment.fd, *shipment.fds]
        berth = pipe_berth(lambda fds, stderr: spawn.worker([*fds, *given], stderr, self._modules))
        introduce(berth.channel, self._posts(seat), shipment.manifest)
        return berth

    def close(self) -> None:
        self._shipment.close()


class Standby:
    """Interpreters spawned ahead of need, which inherit nothing and find their memory by name."""

    forks, processes = False, True

    def __init__(self, job: Errand, posts: Posts) -> None:
        from holdfast._system import standby

        standby.reserve(job.seats)  # they start while the job is packed
        self._posts, self._seats, self._spares, self._lives = posts, job.seats, standby, 0
        self._prefix = NamedSegment.new_prefix("crew")
        try:
            self._shipment = _shipped_by_name(job, self._prefix + "-shipment")
        except BaseException:
            remove_named(self._prefix)
            raise

    def launch(self, seat: int) -> Berth:
        process, connection = self._spares.take()
        self._spares.reserve(1)  # whoever dies next is replaced without a wait
        self._lives += 1
        shipment, life = self._shipment, f"{self._prefix}-{self._lives}"
        return named_berth(process, connection, life, shipment.segment.prefix, self._posts(seat), shipment.manifest)

    def close(self) -> None:
        self._shipment.close()
        remove_named(self._prefix)
        if self._lives:
            self._spares.reserve(self._seats)  # for the next epoch, while the trainer does something else


def shipped(job: Errand, segment: S) -> Shipment[S]:
    """The job in a sealed segment; an error that names the member in the way."""
    try:
        return ship(job, segment)
    except Exception as error:
        segment.close()
        raise who_is_to_blame(job, error, try_to_ship) from error


def _shipped_by_name(job: Errand, prefix: str) -> Shipment[NamedSegment]:
    shipment = shipped(job, NamedSegment(prefix, unlink=False))
    if shipment.fds:
        shipment.close()
        raise who_is_to_blame(job, TypeError("the job holds file descriptors"), try_to_ship_by_name)
    return shipment


def who_is_to_blame(job: Errand, error: Exception, attempt: Callable[[object], object]) -> Exception:
    for what in job.parts:
        culprit = find_culprit(getattr(job, what), what, attempt)
        if culprit is not None:
            return CannotShip(what, *culprit, "")
    return error


def launcher(start: str, job: Errand, posts: Posts, *, may_fork: bool = False) -> Launcher:
    """The launcher of that name; ``may_fork``: a job that cannot be shipped may be taken along by a fork instead."""
    try:
        return _launcher(start, job, posts)
    except CannotShip as refusal:
        if not may_fork:
            raise
        from .forking import fall_back

        return fall_back(refusal, job, posts)


def _launcher(start: str, job: Errand, posts: Posts) -> Launcher:
    match start:
        case "zygote":
            return FromZygote(job, posts)
        case "spawn":
            return Spawned(job, posts)
        case "standby":
            return Standby(job, posts)
        case "fork":
            from .forking import Forked

            return Forked(job, posts)
        case "thread":
            from .threads import Threads

            assert isinstance(job, Job)
            return Threads(job, posts)
        case _:
            raise AssertionError(f"no launcher is called {start!r}")
