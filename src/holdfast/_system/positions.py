"""Where open files stand. A fork has the same open files, and when it reads from one it moves that for us, too."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_OPEN = "/dev/fd"  # this process' descriptors, on every POSIX system


@contextmanager
def kept() -> Iterator[None]:
    """Whatever forks do meanwhile, files are afterwards where they were. Nothing else that is shared is put back."""
    before = _positions()
    try:
        yield
    finally:
        for fd, position in before.items():
            with suppress(OSError):  # closed meanwhile
                os.lseek(fd, position, os.SEEK_SET)


def _positions() -> dict[int, int]:
    found = {}
    with suppress(FileNotFoundError):
        for fd in map(int, os.listdir(_OPEN)):
            with suppress(OSError):  # the listing's own
                if stat.S_ISREG(os.fstat(fd).st_mode):
                    found[fd] = os.lseek(fd, 0, os.SEEK_CUR)
    return found
