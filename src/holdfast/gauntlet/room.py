"""Where a program of the gauntlet runs: limits, a /dev/shm and a memory group of its own.

Run as a script it makes the room in its own process and then becomes the program, so that nothing of it reaches anyone
else: ``python room.py '{"descriptors": 256}' python program.py``. It imports nothing of holdfast.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_NEW_MOUNTS = 0x00020000  # CLONE_NEWNS
_PRIVATE_BELOW = 0x4000 | 0x40000  # MS_REC | MS_PRIVATE


@dataclass(frozen=True)
class Room:
    """What a program may use. None: what everybody may."""

    shm: int | None = None  # bytes of a private /dev/shm; takes root, or the right to make mount namespaces
    descriptors: int | None = None
    memory: int | None = None  # bytes that it and all it starts have together, as in a container; takes root

    def enter(self) -> None:
        """For this process and all that it starts, for good."""
        import resource  # here, as not every system has it

        # A shell that runs the gauntlet in the background has it ignore Ctrl-C, and programs inherit that.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.descriptors, self.descriptors))
        if self.shm is not None:
            _replace_shm(self.shm)
        if self.memory is not None:
            _enter_group(self.memory)

    def clear_away(self, pid: int) -> None:
        """What the kernel keeps of the room that this process made, when everybody has left it."""
        group, deadline = _group(pid)[0], time.monotonic() + 1
        while self.memory is not None and group.exists() and time.monotonic() < deadline:
            try:
                group.rmdir()
            except OSError:
                time.sleep(0.01)  # until those who were killed have left; no descriptor tells of that


def _enter_group(limit: int) -> None:
    group, file = _group(os.getpid())
    try:
        group.mkdir()
        (group / file).write_text(str(limit))
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        sys.exit(f"a memory group (it takes root): {error.strerror}")


def _group(pid: int) -> tuple[Path, str]:
    """Its folder, and the file of its limit, in either version of cgroups."""
    old = Path("/sys/fs/cgroup/memory")
    if old.exists():
        return old / f"gauntlet-{pid}", "memory.limit_in_bytes"
    return old.parent / f"gauntlet-{pid}", "memory.max"


def _replace_shm(size: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(_NEW_MOUNTS), "a mount namespace (it takes root)")
    _check(libc.mount(b"none", b"/", None, ctypes.c_ulong(_PRIVATE_BELOW), None), "private mounts")
    _check(libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", ctypes.c_ulong(0), b"size=%d" % size), "a /dev/shm of its own")


def _check(status: int, what: str) -> None:
    if status:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    Room(**json.loads(sys.argv[1])).enter()
    os.execv(sys.argv[2], sys.argv[2:])
