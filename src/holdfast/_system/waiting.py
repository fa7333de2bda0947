"""One wait on everything: pipes, sentinels, and time."""

from __future__ import annotations

import math
import select
import sys
from multiprocessing import connection
from time import monotonic

READ = 1
WRITE = 2
MOMENT = 0.0002  # seconds: to be put to sleep and woken, on both sides, takes about as long


if sys.platform == "win32":
    import _winapi

    class _PipeHandle(int):
        """Tells ``connection.wait`` that this is a pipe to read from: the system cannot wait on it as it is."""

        def fileno(self) -> int:
            return int(self)

    def _waitable(handle: int) -> int:
        return _PipeHandle(handle) if _winapi.GetFileType(handle) == _winapi.FILE_TYPE_PIPE else handle


class Waiter:
    """Descriptors to wait on. Owns none of them."""

    def __init__(self) -> None:
        self._wanted: dict[int, int] = {}
        self.changes = 0  # how often that has changed: a wait that has begun does not know of later ones
        if sys.platform != "win32":
            self._poll = select.poll()

    def watch(self, fd: int, what: int = READ) -> None:
        if self._wanted.get(fd) == what:
            return
        self._wanted[fd] = what
        self.changes += 1
        if sys.platform != "win32":
            flags = (select.POLLIN if what & READ else 0) | (select.POLLOUT if what & WRITE else 0)
            self._poll.register(fd, flags)

    def forget(self, fd: int) -> None:
        """Must come before the descriptor is closed; forgetting twice is harmless."""
        if self._wanted.pop(fd, None) is not None and sys.platform != "win32":
            self._poll.unregister(fd)

    def wait_awake(self, seconds: float) -> list[int]:
        """As ``wait``, but for a moment without going to sleep. For whoever has nothing else to do, and is likely to be
        answered at once: who is woken is late, and his caches are cold.
        """
        if sys.platform != "win32":
            poll, until = self._poll.poll, monotonic() + min(seconds, MOMENT)
            while monotonic() < until:
                if ready := poll(0):
                    return [fd for fd, _ in ready]
        return self.wait(seconds)

    def wait(self, seconds: float) -> list[int]:
        """The descriptors on which something happened, [] when the time is up first."""
        if sys.platform == "win32":
            timeout = None if seconds == math.inf else max(0.0, seconds)
            return [int(fd) for fd in connection.wait([_waitable(fd) for fd in self._wanted], timeout)]
        # Rounded up: a wait that ends before the deadline would only be begun again.
        milliseconds = None if seconds == math.inf else max(0, math.ceil(seconds * 1000))
        return [fd for fd, _ in self._poll.poll(milliseconds)]
