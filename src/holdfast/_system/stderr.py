"""What a worker says on its stderr: shown where the trainer's goes, and the last of it kept as evidence."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

KEPT = 2048  # bytes
LINES = 10
# Enough for what a worker says while the trainer computes: it loads no further than the window, and then waits in
# silence. One that says more waits for the next ``next()``, which reads. Not a MiB: 64 of those are all that the
# kernel allows one user, who may well have 8 ranks of 16 workers, and pipes made after that are tiny.
ROOM = 1 << 18


class Stderr:
    """The trainer's end of a pipe that is a worker's descriptor 2. Owned by that process' object.

    A process that the worker started may hold the other end for as long as it likes: nothing here waits for the pipe's
    end.
    """

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd, self._last = fd, b""
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    @classmethod
    def pipe(cls) -> tuple[Stderr, int]:
        """Ours, and the descriptor of the worker's end, which blocks."""
        ours, theirs = os.pipe()
        with suppress(ImportError, AttributeError, OSError):  # not on every system, nor beyond a user's share
            import fcntl

            fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, ROOM)
        return cls(ours), theirs

    def fileno(self) -> int:
        return self._fd

    def forward(self) -> bool:
        """Show what has come. False when no more can come."""
        if self._fd < 0:
            return False
        try:
            data = os.read(self._fd, ROOM)
        except BlockingIOError:
            return True
        self._last = (self._last + data)[-KEPT:]
        self._take(self._decoder.decode(data, final=not data))
        return bool(data)

    def _take(self, text: str) -> None:
        show(text, "stderr")

    def last_lines(self) -> str:
        lines = self._last.decode("utf-8", "replace").splitlines()
        if len(self._last) == KEPT and len(lines) > 1:
            del lines[0]  # most likely not whole
        return "\n".join(lines[-LINES:])

    def close(self) -> None:
        """Calling it twice is harmless."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@contextmanager
def above_standard() -> Iterator[None]:
    """Descriptors made in here are none of 0, 1 and 2, also in a program that has closed those: a worker's own 2 would
    take their place."""
    taken: list[int] = []
    try:
        while not taken or taken[-1] <= 2:
            taken.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        for fd in taken:
            os.close(fd)


def show(text: str, name: str) -> None:
    """On this stream of ours, in Python's words, as notebooks and tests put their own there. Never by its descriptor:
    where it was closed, that is the number of some other file by now."""
    for stream in (getattr(sys, name), getattr(sys, f"__{name}__")):
        try:
            if stream is not None and text:
                stream.write(text)
                stream.flush()
                return
        except Exception:  # closed, or broken: it is not ours to complain about
            continue
