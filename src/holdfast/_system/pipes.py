"""Which processes a pipe leads to: both ends have the same number wherever they are open. Linux only."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

_STANDARD = (0, 1, 2)  # their other ends are a shell's, and tell nothing of a job


class End(NamedTuple):
    pipe: int  # the same for all of its ends
    writes: bool

    @property
    def other(self) -> End:
        return End(self.pipe, not self.writes)


def ends(pid: int) -> dict[int, End]:
    """The ends that a process holds, by descriptor; none when it may not be looked into."""
    found: dict[int, End] = {}
    folder = f"/proc/{pid}/fd"
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(FileNotFoundError):  # closed meanwhile
                link = os.readlink(f"{folder}/{name}")
                if link.startswith("pipe:["):
                    mode = os.lstat(f"{folder}/{name}").st_mode
                    found[int(name)] = End(int(link[6:-1]), bool(mode & 0o200))
    return found


def dead_ends(pid: int, family: Iterable[int]) -> int:
    """Pipes that a process could read from and that nobody in the whole system can write to.

    ``multiprocessing`` holds one for each child that it started, and by it would hear of the child's end.
    """
    reads = {end for fd, end in ends(pid).items() if fd not in _STANDARD and not end.writes}
    for other in (*family, *_everybody()):
        if not reads:
            break
        reads -= {end.other for end in ends(other).values()}
    return len(reads)


def _everybody() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]
