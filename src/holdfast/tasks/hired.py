"""Workers of a pool in a loader's service: a launcher whose berths are stand-ins for them.

To its crew a stand-in is a worker like any other. What it is told to load it has the pool do, one batch at a time, in
whichever process is free; when that process dies, so does the stand-in, and the crew does what it does about a death.
"""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from holdfast._engine.berth import Berth
from holdfast._engine.launchers import Posts, who_is_to_blame
from holdfast._engine.threads import ThreadLine
from holdfast._system.segments import NamedSegment
from holdfast._transport.arena import ArenaFull, ArenaView
from holdfast._transport.messages import Begin, Close, InitFailed, Load, Message, Noticed, Raised, Ready, Report, pack
from holdfast._transport.packer import take_apart
from holdfast._worker.guest import Invitation, Left
from holdfast._worker.job import Job
from holdfast.errors import PoolBroken, SharedMemoryFull, TaskDied, Verdict

from .loading import Loading, Unwanted
from .pool import Pool
from .standing import StandInLine, StandInLogbook, StandInProcess


class Hired:
    """Owns the job as the pool's workers are sent it: packed once, dropped by all of them when this is closed."""

    forks = False

    def __init__(self, pool: Pool, job: Job, posts: Posts) -> None:
        pool._check_running()
        self.works, self.turns = pool._works, pool._turns
        self._awaits_notice = posts(0).tells_random
        self._changes: dict[Any, bytes] = {}  # of the data set's attributes, since it was packed
        self._first: StandIn | None = None
        with self.works.lock:
            self.kit = self.works.kits.of(Invitation(job, self._awaits_notice), "map")
            self.kit.kept = True
        if self.kit.error is not None:
            raise _refusal(job, self.kit.error)

    def launch(self, seat: int) -> Berth:
        processes = self.works.processes
        stand_in = StandIn(self, processes[seat % len(processes)].pid)
        if not seat:
            self._first = stand_in
        return stand_in

    def close(self) -> None:
        with self.works.lock:
            self.works.kits.release(self.kit)

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
    """Stands for whoever of the pool loads its batch. Told things by the crew, and by the thread that keeps the pool
    going; a lock is never held where the pool's may be waited for."""

    def __init__(self, hired: Hired, pid: int) -> None:
        self._hired, self._lock = hired, threading.RLock()  # a collector may close us in the middle of anything
        self._begin = b""
        self._asked: deque[Load] = deque()
        self._loading: Loading | None = None
        self._has_left = False
        self._line, self._process, self._logbook = StandInLine(), StandInProcess(pid), StandInLogbook(self._look)
        super().__init__(self._process, self._line, self._logbook, ArenaView(NamedSegment("", unlink=False)))
        self.say(Ready(), pid)
