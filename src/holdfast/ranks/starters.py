"""The three ways to start a rank's process, behind one contract."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Protocol

from holdfast._system.fork import forked_child
from holdfast._system.interpreter import command, deaf_to_interrupts
from holdfast._system.process import ChildProcess, Process
from holdfast._system.segments import MemfdSegment
from holdfast._system.starts import resolve
from holdfast._system.stderr import above_standard
from holdfast._system.zygote import ZygoteDied, zygote
from holdfast._transport.culprit import find_culprit
from holdfast._transport.shipment import Manifest, Shipment, ship, try_to_ship
from holdfast._worker.job import Job, Post
from holdfast._worker.settings import gather
from holdfast.errors import CannotShipToRanks

from .entry import Ends, FromZygote, forked
from .process import Errand

Posts = Callable[[int], Post]


class Starter(Protocol):
    """Starts the ranks of one call. Owns what they are handed."""

    manifest: Manifest | None  # of the shipment, which a rank has to be told of

    def start(self, post: Post, ends: Ends, stderr: int) -> Process: ...

    def close(self) -> None: ...


class Spawned:
    """New interpreters, with the environment of the parent: thread pools of numeric libraries are as large as there."""

    def __init__(self, errand: Errand) -> None:
        self._shipment = _shipped(errand, errand)
        self.manifest: Manifest | None = self._shipment.manifest

    def start(self, post: Post, ends: Ends, stderr: int) -> Process:
        fds = [*ends, self._shipment.segment.fd, *self._shipment.fds]
        from_main = threading.current_thread() is threading.main_thread()
        code = f"from holdfast.ranks.entry import spawned; spawned({fds!r}, {os.getpid()}, {from_main})"
        with deaf_to_interrupts():
            popen = subprocess.Popen(
                command(code),
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                stdout=ends.stdout,
                stderr=stderr,
                env=post.environ,
            )
        popen.returncode = 0  # the pidfd tells; subprocess must not wait for it as well
        return ChildProcess(popen.pid)

    def close(self) -> None:
        self._shipment.close()


class Zygotes:
    """Forks of the clean process, which makes workers: the rank is all that its worker does to get ready."""

    def __init__(self, errand: Errand, ranks: int) -> None:
        with open(os.devnull) as nothing:
            places = Ends(*[nothing.fileno()] * len(Ends._fields))
            job = Job(None, list, FromZygote(errand, places), False, False, False, ranks, gather())
            self._shipment = _shipped(job, errand)
        self.manifest: Manifest | None = self._shipment.manifest
        self._modules = [*job.modules, *self._shipment.modules]

    def start(self, post: Post, ends: Ends, stderr: int) -> Process:
        shipment = self._shipment
        passengers = [*ends, *shipment.fds[len(ends) :]]
        given = [ends.reads, ends.writes, ends.logbook, ends.outcome, shipment.segment.fd, *passengers]
        try:
            return zygote(self._modules).fork(given, stderr)
        except ZygoteDied:
            return zygote(self._modules).fork(given, stderr)  # someone killed it; a new one was started

    def close(self) -> None:
        self._shipment.close()


class Forked:
    """Forks of the parent itself: nothing is serialised, everything is inherited, locks included."""

    manifest: Manifest | None = None

    def __init__(self, errand: Errand) -> None:
        self._errand = errand

    def start(self, post: Post, ends: Ends, stderr: int) -> Process:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()  # or what is in their buffers would be printed by each fork again
        return forked_child(lambda: forked(self._errand, post, ends), stderr)

    def close(self) -> None: ...


def starter(start_method: str, errand: Errand, ranks: int) -> Starter:
    match resolve(start_method, None):
        case "spawn":
            return Spawned(errand)
        case "zygote":
            return Zygotes(errand, ranks)
        case "fork":
            return Forked(errand)
        case other:
            raise ValueError(f'ranks are started by "spawn", "fork", "forkserver" or "zygote", not by {other!r}')


def _shipped(value: object, errand: Errand) -> Shipment[MemfdSegment]:
    with above_standard():
        segment = MemfdSegment.create("holdfast-shipment")
    try:
        return ship(value, segment)
    except Exception as error:
        segment.close()
        for what in ("fn", "args"):
            culprit = find_culprit(getattr(errand, what), what, try_to_ship)
            if culprit is not None:
                raise CannotShipToRanks(what, *culprit, "") from error
        raise
