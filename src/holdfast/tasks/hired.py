"""Workers of a pool in a loader's service: a launcher whose berths are stand-ins for them.

To its crew a stand-in is a worker like any other. What it is told to load it has the pool do, one batch at a time, in
whichever process is free; when that process dies, so does the stand-in, and the crew does what it does about a death.
"""

from __future__ import annotations

import os
import pickle
import threading
from collections import deque
from functools import partial
from typing import Any

from holdfast._engine.berth import Berth
from holdfast._engine.launchers import Posts, who_is_to_blame
from holdfast._system.segments import NamedSegment
from holdfast._transport.arena import ArenaFull, ArenaView
from holdfast._transport.logbook import Entry
from holdfast._transport.messages import Begin, Close, InitFailed, Load, Message, Noticed, Raised, Ready, Report, pack
from holdfast._transport.packer import take_apart
from holdfast._worker.guest import Invitation, Left
from holdfast._worker.job import Job
from holdfast.errors import PoolBroken, SharedMemoryFull, TaskDied, Verdict

from .loading import Loading, Said, Unwanted, waiting
from .pool import Pool
from .standing_in import StandInLine, StandInLogbook, StandInProcess


class Hired:
    """Owns the job as the pool's workers are sent it: packed once, and dropped by all of them when this is closed."""

    forks, processes = False, True

    def __init__(self, pool: Pool, job: Job, posts: Posts) -> None:
        pool._check_running()
        self.works, self.turns = pool._works, pool._turns
        self._awaits_notice = posts(0).tells_random
        self._changes: dict[Any, bytes] = {}  # of the data set's attributes, since it was packed
        self._first: StandIn | None = None
        with self.works.lock:
            self.works.opening.now(job.modules)
            self.kit = self.works.kits.keep(Invitation(job, self._awaits_notice), "map")
        if self.kit.error is not None:
            raise _refusal(job, self.kit.error)

    def launch(self, seat: int) -> Berth:
        with self.works.lock:
            processes = self.works.processes
            pid = processes[seat % len(processes)].pid if processes else os.getpid()
        stand_in = StandIn(self, pid)
        if not seat:
            self._first = stand_in
        return stand_in

    def close(self) -> None:
        self.turns.have_done(partial(self.works.release, self.kit))

    def complete(self, begin: Begin) -> bytes:
        """With all changes so far: nobody knows which of them a worker of the pool has seen."""
        if begin.changes is not None:
            self._changes.update(pickle.loads(begin.changes))
        return pack(begin._replace(changes=pickle.dumps(self._changes) if self._changes else None))

    def notice(self, noticed: Noticed, pid: int) -> None:
        """Once, and as of the first worker."""
        if self._awaits_notice and self._first is not None:
            self._awaits_notice = False
            self._first.say(noticed, pid)


class StandIn(Berth):
    """Stands for whoever of the pool loads its batch. Used by the crew and by whichever thread keeps the pool going;
    only that one touches the pool, as the crew's may be interrupted anywhere."""

    process: StandInProcess
    logbook: StandInLogbook

    def __init__(self, hired: Hired, pid: int) -> None:
        self._hired, self._line = hired, StandInLine()
        # Never held while the pool's is waited for. A collector may close us in the middle of anything: reentrant.
        self._lock = threading.RLock()
        self._begin = b""
        self._asked: deque[Loading] = deque()
        self._has_left = False
        process, logbook = StandInProcess(pid), StandInLogbook(self._look)
        super().__init__(process, self._line, logbook, ArenaView(NamedSegment("", unlink=False)))
        self.say(Ready(), pid)

    # -- the crew's side -----------------------------------------------------------------------

    def tell(self, message: Message) -> None:
        match message:
            case Load():
                self._asked.append(Loading(self._hired.kit, self._begin, message, self))
                if self.process.loading is None:
                    self._hired.turns.have_done(self._go_on)
            case Begin():
                self._begin = self._hired.complete(message)
                self._take_back()
            case Close():
                self._leave(waiting(), Verdict(0))
                self._take_back()
            case _:
                raise AssertionError(f"a map-style data set needs no {message}")

    def hear(self) -> list[Message]:
        heard = self._line.hear()
        if heard:
            self.process.is_now(self._line.speaker)
        return heard

    def _look(self) -> Entry:
        loading = self.process.loading
        if loading is None or loading.berth is None:
            return waiting()
        self.process.is_now(loading.pid)
        return loading.entry()

    def _take_back(self) -> None:
        """What is not begun: it is of an epoch that is over."""
        self._asked.clear()
        loading = self.process.loading
        if loading is not None:
            self._hired.turns.have_done(partial(self._hired.works.withdraw, loading, Unwanted()))

    # -- the pool's side -----------------------------------------------------------------------

    def say(self, message: Message, pid: int) -> None:
        self._line.say_for(pid, message)

    def settled(self, loading: Loading, said: Said) -> None:
        with self._lock:
            self.process.loading = None
            if not self._has_left:
                self._take_in(loading, said)
        self._go_on()

    def _go_on(self) -> None:
        with self._lock:
            if self.process.loading is not None or self._has_left or not self._asked:
                return
            loading = self.process.loading = self._asked.popleft()
        with self._hired.works.lock:
            self._hired.works.submit(loading, 1)

    def _take_in(self, loading: Loading, said: Said) -> None:
        pid = loading.pid or self.process.pid
        match said:
            case Left():
                self._leave(said.entry, Verdict(said.status, said.stack), loading)
            case TaskDied():
                self._leave(loading.entry(), said.verdict, loading)
            case Unwanted():
                pass
            case PoolBroken():
                self.say(Raised(loading.batch, [Report(None, said, "", "", fatal=True, whole=False)]), pid)
            case BaseException():
                self.say(InitFailed(said), pid)
            case _:
                for message in said:
                    self._pass_on(message, pid)

    def _pass_on(self, message: Message, pid: int) -> None:
        if isinstance(message, Noticed):
            self._hired.notice(message, pid)
        else:
            self.say(message, pid)

    def _leave(self, entry: Entry, verdict: Verdict, loading: Loading | None = None) -> None:
        with self._lock:
            if not self._has_left:
                self._has_left = True
                self.logbook.keep(entry, verdict.stack)
                self.process.leave(verdict, loading)
                self._line.hang_up()


def _refusal(job: Job, error: Exception) -> Exception:
    if isinstance(error, ArenaFull):
        return SharedMemoryFull(error.wanted, error.held, error.limit, error.reason)
    refusal = who_is_to_blame(job, error, take_apart)
    if refusal is not error:
        refusal.__cause__ = error
    return refusal
