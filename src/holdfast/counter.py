"""``Counter``: a number that all workers add to, exact whoever is killed.

No lock guards it, so nobody can die holding one. Every thread that adds has a cell of its own in shared memory, and the
value is their sum. A cell is claimed by appending it to the file: the kernel lets no two writers append at the same
place, and a claimer that is killed leaves at most a zero behind. A claim takes 8 bytes for as long as the counter
lives.

The memory is anonymous where ``/proc`` shows it to the processes that are handed the counter: no name, nothing left
behind by ``kill -9`` of everyone. A descriptor that travels with the shipment would do for most workers, but not for
standby ones, nor through a plain pickle. Elsewhere it is a file in the temporary directory, removed by its maker.
"""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from typing import Any

from ._system.segments import MemfdSegment, names_of

CELL = 8
TOKEN = 16  # bytes at the start, which tell it from whatever may be found in its place later
RESET = TOKEN // CELL  # where the sum at the last reset is; the cells follow
ANONYMOUS = os.path.exists("/proc/self/fd") and hasattr(os, "memfd_create")


class Counter:
    """A number to add to from anywhere: worker processes of every kind, threads, the trainer, children of all of these.

    ::

        self.rotten = Counter()         # in the data set
        self.rotten += 1                # in a worker
        loader.dataset.rotten.value     # in the trainer

    Pickled, copied or inherited by a fork, it stays the same number; whoever hands it on must hold it until it has
    arrived. It is exact over epochs and kills: what was added counts. What was added for a batch that was lost with its
    worker therefore counts again when the batch is loaded again.
    """

    def __init__(self) -> None:
        token = os.urandom(TOKEN)
        fd, path = _new_file(token + bytes(CELL))
        self._hold(fd, path, token)
        if path:
            weakref.finalize(self, _remove, path, os.getpid())

    def _hold(self, fd: int, path: str, token: bytes) -> None:
        """Owns the descriptor; the maker owns the file, where there is one."""
        self._fd, self._path, self._token = fd, path, token
        self._cells = _mapped(fd)
        self._own = threading.local()
        weakref.finalize(self, os.close, fd).atexit = False
        _held.add(self)

    def add(self, n: int = 1) -> None:
        """Takes well under a microsecond; in a new thread or process, once, a little more."""
        try:
            cell = self._own.cell
        except AttributeError:
            cell = self._own.cell = self._claim()
        cell[0] += n

    def __iadd__(self, n: int) -> Counter:
        self.add(n)
        return self

    @property
    def value(self) -> int:
        """All that was added since the last reset, by the living and the dead."""
        return self._total() - self._cells[RESET]

    def __int__(self) -> int:
        return self.value

    def reset(self) -> None:
        """From 0 again. What others add meanwhile counts before this or after it, and is not lost."""
        self._cells[RESET] = self._total()

    def __repr__(self) -> str:
        return f"Counter(value={self.value})"

    def __reduce__(self) -> Any:
        return _handed, (self._path or f"/proc/{os.getpid()}/fd/{self._fd}", bool(self._path), self._token)

    def _total(self) -> int:
        if os.fstat(self._fd).st_size > self._cells.nbytes:
            self._cells = _mapped(self._fd)
        return sum(self._cells[RESET + 1 :])

    def _claim(self) -> memoryview:
        # Opened anew: an append moves the position of an opened file, which tells where our cell is.
        fd = os.open(self._path or f"/proc/self/fd/{self._fd}", os.O_WRONLY | os.O_APPEND)
        try:
            os.write(fd, bytes(CELL))
            place = os.lseek(fd, 0, os.SEEK_CUR) // CELL - 1
        finally:
            os.close(fd)
        return _mapped(self._fd)[place : place + 1]


def _handed(address: str, is_file: bool, token: bytes) -> Counter:
    """The counter behind an address, in the process that was handed it."""
    try:
        fd = os.open(address, os.O_RDWR)
        if os.read(fd, TOKEN) != token:
            os.close(fd)
            raise FileNotFoundError(address)
    except OSError as error:
        raise RuntimeError(f"the Counter at {address} is no longer held by the process that handed it on") from error
    counter = Counter.__new__(Counter)
    counter._hold(fd, address if is_file else "", token)
    return counter


def _new_file(content: bytes) -> tuple[int, str]:
    """A descriptor, and the path of the file if it has one."""
    if ANONYMOUS:
        fd, path = MemfdSegment.create("holdfast-counter").fd, ""
    else:
        path = f"{names_of(os.getpid())}{os.urandom(6).hex()}-counter"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, content)
    return fd, path


def _mapped(fd: int) -> memoryview:
    return memoryview(mmap.mmap(fd, 0)).cast("q")


def _remove(path: str, maker: int) -> None:
    if os.getpid() == maker:
        os.unlink(path)


def _claim_anew() -> None:
    """In a fork: the cell of the thread that forked stays the parent's."""
    for counter in _held:
        counter._own = threading.local()


_held: weakref.WeakSet[Counter] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_claim_anew)
