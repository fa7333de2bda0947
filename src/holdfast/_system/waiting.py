"""One wait on everything: pipes, sentinels, and time."""

from __future__ import annotations

import math
import select
import sys
from multiprocessing import connection

READ = 1
WRITE = 2


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

    def wait(self, seconds: float) -> list[int]:
        """The descriptors on which something happened, [] when the time is up first."""
        if sys.platform == "win32":
            timeout = None if seconds == math.inf else max(0.0, seconds)
            return [int(fd) for fd in connection.wait([_waitable(fd) for fd in self._wanted], timeout)]
        # Rounded up: a wait that ends before the deadline would only be begun again.
        milliseconds = None if seconds == math.inf else max(0, math.ceil(seconds * 1000))
        return [fd for fd, _ in self._poll.poll(milliseconds)]
