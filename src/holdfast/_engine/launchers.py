"""The ways to start a worker, behind one contract.

A launcher is made once for a crew, from the job and the posts of its seats, and asked for one berth at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from holdfast._system import spawn
from holdfast._system.process import Process
from holdfast._system.segments import MemfdSegment
from holdfast._system.zygote import ZygoteDied, zygote
from holdfast._transport.culprit import find_culprit
from holdfast._transport.shipment import S, Shipment, ship, try_to_ship
from holdfast._worker.job import Job, Post
from holdfast.errors import CannotShip

from .berth import Berth, introduce, pipe_berth

Posts = Callable[[int], Post]


class Launcher(Protocol):
    """Starts workers of one crew. Owns what they are handed."""

    def launch(self, seat: int) -> Berth: ...

    def close(self) -> None:
        """No more workers will be started."""
        ...


class FromZygote:
    """Forks of the clean process: as fast as fork, as safe as spawn."""

    def __init__(self, job: Job, posts: Posts) -> None:
        self._posts = posts
        self._shipment = shipped(job, MemfdSegment.create("holdfast-shipment"))
        zygote(self._shipment.modules)

    def launch(self, seat: int) -> Berth:
        shipment = self._shipment

        def fork(fds: list[int]) -> Process:
            given = [*fds, shipment.segment.fd, *shipment.fds]
            try:
                return zygote(shipment.modules).fork(given)
            except ZygoteDied:
                return zygote(shipment.modules).fork(given)  # someone killed it; a new one was started

        berth = pipe_berth(fork)
        introduce(berth.channel, self._posts(seat), shipment.manifest)
        return berth

    def close(self) -> None:
        self._shipment.close()


class Spawned:
    """New interpreters, one for each worker."""

    def __init__(self, job: Job, posts: Posts) -> None:
        self._posts = posts
        self._shipment = shipped(job, MemfdSegment.create("holdfast-shipment"))

    def launch(self, seat: int) -> Berth:
        shipment = self._shipment
        berth = pipe_berth(lambda fds: spawn.worker([*fds, shipment.segment.fd, *shipment.fds]))
        introduce(berth.channel, self._posts(seat), shipment.manifest)
        return berth

    def close(self) -> None:
        self._shipment.close()


class Forked:
    """Forks of the trainer, for those who ask: nothing is serialised, everything is inherited, locks included."""

    def __init__(self, job: Job, posts: Posts) -> None:
        self._job, self._posts = job, posts

    def launch(self, seat: int) -> Berth:
        from holdfast._system.fork import forked_child
        from holdfast._worker.process import work_forked

        post = self._posts(seat)
        return pipe_berth(lambda fds: forked_child(lambda: work_forked(self._job, post, fds)))

    def close(self) -> None: ...


def shipped(job: Job, segment: S) -> Shipment[S]:
    """The job in a sealed segment; an error that names the member in the way."""
    try:
        return ship(job, segment)
    except Exception as error:
        segment.close()
        raise _who_is_to_blame(job, error) from error


def _who_is_to_blame(job: Job, error: Exception) -> Exception:
    for what in ("dataset", "collate_fn", "worker_init_fn", "collate_types"):
        culprit = find_culprit(getattr(job, what), what, try_to_ship)
        if culprit is not None:
            return CannotShip(what, *culprit)
    return error


def launcher(start: str, job: Job, posts: Posts) -> Launcher:
    """The launcher of that name."""
    match start:
        case "zygote":
            return FromZygote(job, posts)
        case "spawn":
            return Spawned(job, posts)
        case "fork":
            return Forked(job, posts)
        case _:
            raise AssertionError(f"no launcher is called {start!r}")
