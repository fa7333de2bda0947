"""How a rank's process comes to its function, by each of the three ways to start one. None of them returns."""

from __future__ import annotations

import atexit
import os
import random
import sys
from contextlib import suppress
from multiprocessing.reduction import DupFd
from typing import Any, NamedTuple, NoReturn

import numpy
import torch
from torch.utils.data._utils import worker as torch_worker

from holdfast._system import posix_child
from holdfast._system.segments import MemfdSegment
from holdfast._transport.channel import PipeChannel
from holdfast._transport.logbook import SIZE, STACK, Logbook
from holdfast._transport.shipment import unload
from holdfast._worker.job import Post
from holdfast._worker.process import introduced
from holdfast._worker.surroundings import take_over
from holdfast.adoption.arrival import arrive

from .process import Errand, RankProcess
from .telling import Telling


class Ends(NamedTuple):
    """The rank's ends of what connects it with its parent, as descriptors."""

    reads: int
    writes: int
    logbook: int
    outcome: int
    stdout: int

    def telling(self) -> Telling:
        logbook = Logbook(MemfdSegment(self.logbook).map(0, SIZE))
        return Telling(PipeChannel(self.reads, self.writes, blocking=True), MemfdSegment(self.outcome), logbook)


def spawned(fds: list[int], parent: int, from_main: bool) -> NoReturn:
    """In a new interpreter, which ends as one."""
    posix_child.reset_signals()
    posix_child.tie_to(parent, from_main)
    for fd in fds:
        os.set_inheritable(fd, False)
    ends, shipment, passengers = Ends(*fds[:5]), MemfdSegment(fds[5]), fds[6:]
    os.close(ends.stdout)  # it is descriptor 1 already
    posix_child.write_crashes_to(ends.logbook, STACK)
    post, manifest, _ = introduced(PipeChannel(ends.reads, ends.writes, blocking=True))

    def errand() -> Errand:
        _find_surroundings(post)
        unloaded: Errand = unload(shipment.map_private(), manifest, passengers)
        shipment.close()
        return unloaded

    sys.exit(RankProcess(post.seat, ends.telling(), errand).live(parent))


def forked(errand: Errand, post: Post, ends: Ends) -> NoReturn:
    """In a fork of the parent: what the parent would do at its end is not for us to do."""
    atexit._clear()
    posix_child.write_crashes_to(ends.logbook, STACK)
    if errand.habits.prints_lines:  # else it goes on as the parent does, also in a notebook
        posix_child.lead("stdout", ends.stdout)

    def inherited() -> Errand:
        _find_surroundings(post)
        return errand

    _leave(RankProcess(post.seat, ends.telling(), inherited).live(errand.habits.parent))


class FromZygote:
    """In a fork of the zygote, which has made it a worker: stands in the place of ``worker_init_fn``.

    Its descriptors are the first that come with the shipment, as they are taken along when this is pickled, before the
    errand is. Those that it is made with only hold these places.
    """

    def __init__(self, errand: Errand, ends: Ends) -> None:
        self._errand, self._ends = errand, ends

    def __reduce__(self) -> Any:
        return _arrived, (self._errand, [DupFd(fd) for fd in self._ends])

    def __call__(self, rank: int) -> NoReturn:
        errand = self._errand
        posix_child.lead("stdout", self._ends.stdout)
        _begin_anew(errand.habits.threads)
        arrive()  # torch was imported before this process was anybody's
        _leave(RankProcess(rank, self._ends.telling(), lambda: errand).live(errand.habits.parent))


def _arrived(errand: Errand, inherited: list[Any]) -> FromZygote:
    return FromZygote(errand, Ends(*[one.detach() for one in inherited]))


def _begin_anew(threads: int) -> None:
    """A worker has one thread, its own seeds, and is known to torch as a worker."""
    torch_worker._worker_info = None
    torch.set_num_threads(threads)
    torch.default_generator.seed()
    random.seed()
    numpy.random.seed()


def _find_surroundings(post: Post) -> None:
    take_over(post.environ, post.cwd, post.sys_path)
    sys.argv[:] = post.argv


def _leave(status: int) -> NoReturn:
    """As an interpreter ends, but without going back to what we are a fork of."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(status)
