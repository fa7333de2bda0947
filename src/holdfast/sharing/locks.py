"""A lock between processes that a killed holder cannot leave locked.

It is the kernel's (``flock`` on the shared file itself), so it is given back when its holder dies, however it dies.
A process opens the file anew for it, since the lock belongs to the opened file: a fork would share its parent's. A
mutex in the shared memory would be faster when it is free, but only a robust one survives its holder, and Python
offers none.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from contextlib import suppress
from typing import Any

from .files import fcntl, open_to_lock

HOLDER = 16  # where in the file the holder writes its pid
_FREE = bytes(8)
_PAUSE = 0.0005  # seconds between two tries, when there is a time limit


class Lock:
    """Excludes all threads of all processes that hold the same memory. May be taken again by the thread that has it.

    Owns a descriptor. ``abandoned`` tells, while it is held, that the holder before was killed with the lock: what it
    was changing may be half done.
    """

    def __init__(self, fd: int, path: str, readonly: bool) -> None:
        self._path, self._readonly = path, readonly
        self._fd = open_to_lock(fd, path)
        self._inner, self._depth = threading.RLock(), 0
        self.abandoned = False
        _open.add(self)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not self._inner.acquire(blocking, timeout):
            return False
        try:
            taken = self._depth > 0 or self._take(blocking, timeout)
        except BaseException:
            self._inner.release()
            raise
        if not taken:
            self._inner.release()
            return False
        self._depth += 1
        return True

    def release(self) -> None:
        if not self._inner._is_owned():  # type: ignore[attr-defined]
            raise RuntimeError("cannot release a lock that this thread does not hold")
        self._depth -= 1
        if not self._depth:
            self._sign(_FREE)
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        self._inner.release()

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(self, *error: Any) -> None:
        self.release()

    def _take(self, blocking: bool, timeout: float) -> bool:
        if blocking and timeout < 0:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        elif not self._try_until(time.monotonic() + (timeout if blocking else 0)):
            return False
        self.abandoned = not self._readonly and os.pread(self._fd, len(_FREE), HOLDER) not in (_FREE, b"")
        self._sign(os.getpid().to_bytes(8, "little"))
        return True

    def _try_until(self, deadline: float) -> bool:
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_PAUSE)
            else:
                return True

    def _sign(self, holder: bytes) -> None:
        if not self._readonly:
            os.pwrite(self._fd, holder, HOLDER)

    def after_fork(self) -> None:
        """In a fork: it is the parent's who has it now; have an opened file of our own."""
        self._inner, self._depth = threading.RLock(), 0
        with suppress(OSError):  # a file whose name is gone
            self._fd, inherited = open_to_lock(self._fd, self._path), self._fd
            os.close(inherited)

    def __reduce__(self) -> Any:
        raise TypeError("a lock does not travel by itself: hand on what it guards, and take the lock of that")

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            os.close(self._fd)


def _after_fork() -> None:
    for lock in list(_open):
        lock.after_fork()


_open: weakref.WeakSet[Lock] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
