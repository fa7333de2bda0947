"""What is seen of all processes of a job in the same moments. Nothing is changed, stopped or written.

Two looks a moment apart tell what each one waits for; then come the Python stacks; a last look, most of a second after
the first, tells who has got on meanwhile.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass

from holdfast._engine import causes
from holdfast._engine.causes import Cause, Kind
from holdfast._engine.stalls import PAUSE
from holdfast._system import frames, proc
from holdfast._system.frames import Threads
from holdfast._system.proc import Look
from holdfast._transport.logbook import Entry, Logbook, Phase

WATCH = 0.8  # seconds from the first look to the last
STACKS = 1.2  # seconds for all Python stacks
AGAIN = 0.5  # seconds for the stacks of those whose place in the data is to be compared
_DEAF = (Kind.STOPPED, Kind.UNINTERRUPTIBLE, Kind.GONE)
_ENTRY = 4096  # bytes of a logbook that are read
# Variables of torch's worker loop and fetcher, of its iterator, and of our fetcher: where each of them is in the data.
VARIABLES = ("worker_id", "num_workers", "idx", "index")


@dataclass(frozen=True, slots=True)
class Sight:
    """One process over that time: ``threads`` and ``entry`` at its beginning, those that are ``later`` at its end."""

    first: Look
    last: Look
    cause: Cause
    threads: Threads
    entry: Entry | None  # of a worker of holdfast
    later_threads: Threads
    later_entry: Entry | None
    folder: str  # its working directory

    @property
    def cpu(self) -> float:
        """The share of a core that its main thread has used."""
        return max(0.0, self.last.cpu - self.first.cpu) / max(self.last.at - self.first.at, 1e-3)


def watch(pids: Iterable[int], workers: Collection[int], is_compared: Callable[[Threads], bool]) -> dict[int, Sight]:
    """``workers``: those of the processes that keep a logbook, if they are ours. ``is_compared``: whether the stack of
    a process, once read, says where in the data it is.
    """
    pids, began = list(pids), time.monotonic()
    first, entries = _looks(pids), _entries(workers)
    _sleep_until(began + PAUSE)
    then = _looks(pids)
    found = {pid: causes.between(first[pid], then[pid]) for pid in pids}
    folders = {pid: _link(f"/proc/{pid}/cwd") for pid in pids}
    there = [pid for pid in pids if found[pid].kind is not Kind.GONE]
    threads = _threads(there, found, STACKS)
    _sleep_until(began + WATCH)
    last, later_entries = _looks(pids), _entries(workers)
    awake = [pid for pid in there if last[pid].state not in ("X", "Z") and has_stirred(first[pid], last[pid])]
    compared = [pid for pid in awake if is_compared(threads[pid])]
    later = _threads(compared, found, AGAIN)
    nothing = Threads()
    return {
        pid: Sight(
            first[pid],
            last[pid],
            causes.at_once(last[pid]) or found[pid],
            threads.get(pid, nothing),
            entries.get(pid),
            later.get(pid, nothing),
            later_entries.get(pid),
            folders[pid],
        )
        for pid in pids
    }


def has_stirred(first: Look, last: Look) -> bool:
    """Whether it has been awake between two looks: else it cannot have got anywhere."""
    return last.cpu > first.cpu or last.sleeps > first.sleeps


def _looks(pids: Collection[int]) -> dict[int, Look]:
    return {pid: proc.look(pid) for pid in pids}


def _entries(pids: Collection[int]) -> dict[int, Entry | None]:
    return {pid: _entry(pid) for pid in pids}


def _threads(pids: Collection[int], found: dict[int, Cause], limit: float) -> dict[int, Threads]:
    return frames.read(pids, {pid for pid in pids if found[pid].kind not in _DEAF}, VARIABLES, limit)


def _entry(pid: int) -> Entry | None:
    """What the logbook of a worker of holdfast says, read through a descriptor that the worker holds.

    One that was forked by the trainer has inherited those of its elders: the latest is its own.
    """
    folder = f"/proc/{pid}/fd"
    with suppress(OSError, ValueError, struct.error):  # it has ended, or is just beginning
        paths = [f"{folder}/{name}" for name in os.listdir(folder)]
        books = [path for path in paths if _link(path).startswith("/memfd:holdfast-logbook")]
        with open(max(books, key=lambda path: os.stat(path).st_ino), "rb", buffering=0) as book:
            logbook = Logbook(memoryview(bytearray(book.read(_ENTRY))))
        entry, guest = logbook.read(), logbook.of_guest().read()
        return guest if entry.phase is Phase.RUNNING and guest.loading else entry
    return None


def _link(path: str) -> str:
    """Where it leads; nowhere when it was closed a moment ago."""
    with suppress(OSError):
        return os.readlink(path)
    return ""


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))
