"""Workers as threads of the trainer, for data sets that release the GIL. The same core, the same crew, no process.

A thread cannot be killed. What ends one is ``SystemExit`` and its kind out of the user's code, which counts as the
death of a worker. A crew that is closed waits a moment for the samples that are being loaded; a thread that needs
longer is let go of: it finishes its sample and ends, and touches nothing of the crew's any more.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection, Pipe

from holdfast._system.process import Process
from holdfast._system.segments import NamedSegment
from holdfast._transport.arena import ArenaView
from holdfast._transport.logbook import SIZE, Logbook
from holdfast._transport.messages import Message
from holdfast._worker.baton import baton
from holdfast._worker.job import Job, Post
from holdfast._worker.thread import work_in_thread

from .berth import Berth
from .lines import ThreadLine

Posts = Callable[[int], Post]

# Kept alive until they are closed. A crew may be part of a cycle (an iterator, an error that is kept, its frames), and
# when that is collected, each end would close itself, in any order, before the crew does: which then closes a
# descriptor that is not its own any more.
_open: set[Connection] = set()


def _pipe() -> tuple[Connection, Connection]:
    ends = Pipe(duplex=False)
    _open.update(ends)
    return ends


def _close(end: Connection) -> None:
    """Calling it twice is harmless."""
    _open.discard(end)
    end.close()


class ThreadProcess(Process):
    """A thread that looks like a process. Its ``pid`` is the trainer's own: never send a signal there."""

    def __init__(self, run: Callable[[], None], ended: Callable[[], None], logbook: Logbook, name: str) -> None:
        self._reader, self._writer = _pipe()
        super().__init__(os.getpid(), self._reader.fileno())
        self._logbook = logbook
        self._code: int | None = None
        self._thread = threading.Thread(target=self._live, args=(run, ended), name=name, daemon=True)
        self._thread.start()
        self.ident = self._thread.ident

    def _live(self, run: Callable[[], None], ended: Callable[[], None]) -> None:
        code = 1
        try:
            run()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            pass  # it is in the logbook, and so in the verdict
        finally:
            self._code = code
            _close(self._writer)
            ended()

    def is_alive(self) -> bool:
        self.join(0)
        return self._thread.is_alive() and not self._ended

    def kill(self) -> None:
        """Let go of it: it ends by itself, later."""
        self._logbook.revoke()  # so the note of the next sample fails, and with it the batch
        self.ended()

    def send_signal(self, number: int) -> None:
        """Nothing: a signal would reach the trainer."""

    def _collect(self) -> int | None:
        return self._code

    def _release(self) -> None:
        _close(self._reader)


class ThreadBerth(Berth):
    """A berth without shared memory: what a thread makes is in the trainer already."""

    def __init__(self, process: ThreadProcess, line: ThreadLine, logbook: Logbook) -> None:
        super().__init__(process, line, logbook, ArenaView(NamedSegment("", unlink=False)))
        self._line = line

    def tell(self, message: Message) -> None:
        self._line.tell(message)

    def hear(self) -> list[Message]:
        return self._line.hear()


class Threads:
    """Starts worker threads. They share the job's objects with the trainer; each iterates an iterable data set anew."""

    forks = processes = False

    def __init__(self, job: Job, posts: Posts) -> None:
        self._job, self._posts, self._baton = job, posts, baton(job.seats)

    def launch(self, seat: int) -> Berth:
        job, post, line = self._job, self._posts(seat), ThreadLine()
        logbook = Logbook(mmap.mmap(-1, SIZE))
        name = f"holdfast-worker-{seat}"
        run = partial(work_in_thread, job, post, line, logbook, self._baton)
        process = ThreadProcess(run, line.hang_up, logbook, name)
        return ThreadBerth(process, line, logbook)

    def close(self) -> None: ...
