"""Framed messages over a pair of pipes, or over a ``multiprocessing`` connection where there are no pipes to inherit.

The trainer's end never blocks: what the pipe does not take waits in a backlog until ``flush`` (the engine
calls it when the pipe has room again), so a worker that is busy for a minute cannot stop the trainer.
The worker's end blocks in both directions.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from multiprocessing.connection import Connection  # which takes as long to import as all of this room

HEADER = 4
CHUNK = 1 << 16


class Channel(Protocol):
    """One end of a conversation. Owned by whoever holds it; ``close`` twice is harmless."""

    def fileno(self) -> int:
        """What to wait on for something to read."""
        ...

    def send(self, message: bytes) -> None: ...

    def put(self, message: bytes) -> None:
        """As ``send``, but it may wait until ``flush``."""
        ...

    def receive(self) -> list[bytes]:
        """All whole messages that have arrived; ``EOFError`` when the other end is gone and all was read."""
        ...

    def backlog(self) -> int:
        """The descriptor to wait on before ``flush`` makes sense, or -1 when nothing waits to be sent."""
        ...

    def flush(self) -> bool:
        """Whether nothing waits any more."""
        ...

    def close(self) -> None: ...


class PipeChannel:
    """Two pipes, one each way: half the cost of a socket per message. Owns both descriptors."""

    __slots__ = ("_partial", "_read_fd", "_unsent", "_wanted", "_write_fd")

    def __init__(self, read_fd: int, write_fd: int, *, blocking: bool) -> None:
        self._read_fd, self._write_fd = read_fd, write_fd
        self._partial = b""  # the start of a message whose rest has not arrived
        self._wanted = 0  # bytes that ``_partial`` must reach before it is worth looking at
        self._unsent: deque[bytes | memoryview] = deque()
        if not blocking:
            os.set_blocking(write_fd, False)
            os.set_blocking(read_fd, False)

    def fileno(self) -> int:
        return self._read_fd

    def send(self, message: bytes) -> None:
        data = len(message).to_bytes(HEADER, "little") + message
        if self._unsent:
            self._unsent.append(data)
            return
        written = self._write(data)
        if written < len(data):
            self._unsent.append(memoryview(data)[written:])
            self.flush()

    def put(self, message: bytes) -> None:
        self._unsent.append(len(message).to_bytes(HEADER, "little") + message)

    def flush(self) -> bool:
        unsent = self._unsent
        while unsent:
            data = unsent[0] if len(unsent) == 1 else self._joined()
            written = self._write(data)
            if written < len(data):
                unsent[0] = memoryview(data)[written:]
                if not written:
                    return False
            else:
                unsent.popleft()
        return True

    def _joined(self) -> bytes | memoryview:
        """Short messages become one; a long one goes alone, without another copy."""
        unsent = self._unsent
        if len(unsent[0]) + len(unsent[1]) <= CHUNK:
            joined = b"".join(unsent)
            unsent.clear()
            unsent.append(joined)
        return unsent[0]

    def backlog(self) -> int:
        return self._write_fd if self._unsent else -1

    def receive(self) -> list[bytes]:
        try:
            data = os.read(self._read_fd, CHUNK)
        except BlockingIOError:
            return []
        if not data:
            raise EOFError
        if self._partial:
            data = self._partial + data
            self._partial = b""
        if len(data) < self._wanted:
            # A long message: read on to its end at once, or joining the chunks would be quadratic.
            data = self._read_up_to(data, self._wanted)
        return self._split(data)

    def close(self) -> None:
        for fd in (self._read_fd, self._write_fd):
            if fd >= 0:
                os.close(fd)
        self._read_fd = self._write_fd = -1
        self._unsent.clear()

    def _split(self, data: bytes) -> list[bytes]:
        messages, start, end = [], 0, len(data)
        self._wanted = 0
        while start + HEADER <= end:
            stop = start + HEADER + int.from_bytes(data[start : start + HEADER], "little")
            if stop > end:
                self._wanted = stop - start
                break
            messages.append(data[start + HEADER : stop])
            start = stop
        self._partial = data[start:]
        return messages

    def _read_up_to(self, data: bytes, wanted: int) -> bytes:
        parts, have = [data], len(data)
        while have < wanted:
            try:
                part = os.read(self._read_fd, max(CHUNK, wanted - have))
            except BlockingIOError:
                break
            if not part:
                break
            parts.append(part)
            have += len(part)
        return b"".join(parts)

    def _write(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self._write_fd, data)
        except BlockingIOError:
            return 0
        except (BrokenPipeError, OSError):
            # The other end is gone. Its sentinel tells the engine; what was sent is re-issued from there.
            return len(data)


class ConnectionChannel:
    """The portable one, for the trainer of standby workers: a ``multiprocessing`` connection.

    Its ``send`` may have to wait for the other end to read. A standby worker reads all the time, also while it loads.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def fileno(self) -> int:
        return self._connection.fileno()

    def send(self, message: bytes) -> None:
        try:
            self._connection.send_bytes(message)
        except OSError:
            pass  # as above: the sentinel tells

    put = send

    def receive(self) -> list[bytes]:
        messages: list[bytes] = []
        try:
            while self._connection.poll(0):
                messages.append(self._connection.recv_bytes())
        except (EOFError, OSError):  # gone, maybe in the middle of a message
            if not messages:
                raise EOFError from None
        return messages

    def backlog(self) -> int:
        return -1

    def flush(self) -> bool:
        return True

    def close(self) -> None:
        self._connection.close()
