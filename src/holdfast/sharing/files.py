"""Where shared bytes lie, and how another process finds them.

Anonymous where ``/proc`` shows a process' descriptors to the others: no name, nothing left behind by ``kill -9`` of
everyone. Elsewhere a file in the temporary directory. Every holder of such a file has a shared lock on it, which the
kernel takes back when the holder dies, so whoever lets go and finds no other lock removes it. What is left when all
holders are killed at once is removed by the next process that shares something.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress

from holdfast._system.segments import MemfdSegment, names_of

try:
    import fcntl as fcntl  # exported: there is one place that knows that it may be missing
except ImportError:  # Windows, where nothing can be shared so far
    fcntl = None  # type: ignore[assignment]

TOKEN = 16  # bytes at the start, which tell a file from whatever may be found in its place later
ANONYMOUS = os.path.isdir("/proc/self/fd") and hasattr(os, "memfd_create")
ENDING = "-shared"
GUARD = ".lock"  # beside a file with a name, for those who want to exclude each other
YOUNG = 60.0  # seconds in which a file may have no holder because it is being made


def new_file(content: bytes) -> tuple[int, str]:
    """A descriptor, and the path of the file if it has one."""
    if ANONYMOUS:
        fd, path = MemfdSegment.create("holdfast-shared").fd, ""
    else:
        remove_abandoned()
        path = f"{names_of(os.getpid())}{os.urandom(6).hex()}{ENDING}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(fd, fcntl.LOCK_SH)
    os.pwrite(fd, content, 0)
    return fd, path


def address_of(fd: int, path: str) -> str:
    """Where others find a file that this process holds now."""
    return path or f"/proc/{os.getpid()}/fd/{fd}"


def path_of(address: str) -> str:
    """The path, of a file that has one."""
    return "" if address.startswith("/proc/") else address


def open_at(address: str, token: bytes) -> int:
    """A descriptor of our own for what lies there; ``OSError`` when it is something else by now."""
    fd = os.open(address, os.O_RDWR | getattr(os, "O_NONBLOCK", 0))
    try:
        if os.pread(fd, TOKEN, 0) != token:
            raise FileNotFoundError(f"something else is at {address}")
        if path_of(address):
            fcntl.flock(fd, fcntl.LOCK_SH)
    except BaseException:
        os.close(fd)
        raise
    return fd


def hold_anew(fd: int, path: str) -> None:
    """In a fork: a lock is the opened file's, and that is shared with the parent; have one of our own."""
    with suppress(OSError):  # the name is gone already
        own = os.open(path, os.O_RDWR)
        fcntl.flock(own, fcntl.LOCK_SH)
        os.dup2(own, fd, inheritable=False)
        os.close(own)


def open_to_lock(fd: int, path: str) -> int:
    """An opened file that is not shared with anybody, so that a lock on it is ours alone."""
    if not path:
        return os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
    os.stat(path)  # or there would be a guard of something that is gone
    return os.open(path + GUARD, os.O_RDWR | os.O_CREAT, 0o600)


def let_go(fd: int, path: str) -> None:
    """Close it, and remove the file if nobody else holds it."""
    if path:
        _remove_unless_held(fd, path)
    os.close(fd)


def remove_abandoned() -> None:
    """Files of processes that were killed, all at once, before one of them could remove them."""
    for entry in os.scandir(tempfile.gettempdir()):
        if not (entry.name.startswith("holdfast-") and entry.name.endswith(ENDING)):
            continue
        with suppress(OSError):
            if time.time() - entry.stat().st_ctime < YOUNG:
                continue
            fd = os.open(entry.path, os.O_RDWR)
            let_go(fd, entry.path)


def _remove_unless_held(fd: int, path: str) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    for name in (path, path + GUARD):
        with suppress(FileNotFoundError):
            os.unlink(name)
