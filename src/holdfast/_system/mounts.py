"""On what kind of storage a path lies. Linux only; elsewhere nothing is known."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from typing import NamedTuple

from .proc import text
from .starts import HAS_FORK
from .trial import Tell, tried

_NETWORK = re.compile(
    r"(nfs\d?|cifs|smb\d?|smbfs|9p|afs|ceph|lustre|gpfs|beegfs|glusterfs|pvfs2|orangefs|drvfs|fuse(\..+)?)"
)
_LOCAL_FUSE = re.compile(r"fuse\.(fuse-overlayfs|overlayfs|squashfuse\w*|snapfuse|portal|bindfs|mergerfs|lxcfs)")
_ESCAPE = re.compile(r"\\(\d{3})")


class Place(NamedTuple):
    """A file or folder that was asked for. ``kind`` is the file system's, such as ``ext4``; empty when unknown."""

    path: str
    exists: bool | None  # None: storage did not answer
    kind: str = ""
    mount: str = ""
    seconds: float = 0.0  # until it answered

    @property
    def is_remote(self) -> bool:
        return _is_remote(self.kind)


class _Mount(NamedTuple):
    point: str
    kind: str


def look_at(paths: Iterable[str], limit: float) -> list[Place]:
    """All of them that answered within ``limit`` seconds, and the one that did not; those behind it are left out.

    Dead network storage keeps whoever asks for ever, so where something of that kind is mounted another process asks. A
    thread would not do: some file systems let nobody end who waits for them, and so no process with such a thread.
    """
    asked, mounts = list(dict.fromkeys(paths)), _mounts(text("/proc/self/mountinfo"))
    if not HAS_FORK or not any(_is_remote(mount.kind) for mount in mounts):
        return [_look_at(path, mounts) for path in asked]
    answered: list[Place] = tried(lambda tell: _ask(asked, mounts, tell), limit).told
    if len(answered) < len(asked):
        silent = asked[len(answered)]
        mount = _mount_of(os.path.abspath(silent), mounts)
        answered.append(Place(silent, None, mount.kind, mount.point, limit))
    return answered


def _ask(paths: list[str], mounts: list[_Mount], tell: Tell) -> None:
    for path in paths:
        tell(_look_at(path, mounts))


def _look_at(path: str, mounts: list[_Mount]) -> Place:
    began = time.perf_counter()
    try:
        exists, real = os.path.exists(path), os.path.realpath(path)
    except (OSError, ValueError):
        exists, real = False, path
    mount = _mount_of(real, mounts)
    return Place(path, exists, mount.kind, mount.point, time.perf_counter() - began)


def _is_remote(kind: str) -> bool:
    return bool(_NETWORK.fullmatch(kind)) and not _LOCAL_FUSE.fullmatch(kind)


def _mount_of(path: str, mounts: list[_Mount]) -> _Mount:
    """The innermost mount; of several at the same point the last, which hides the others."""
    around = [mount for mount in mounts if f"{path}/".startswith(f"{mount.point.rstrip('/')}/")]
    return max(reversed(around), key=lambda mount: len(mount.point), default=_Mount("", ""))


def _mounts(told: str) -> list[_Mount]:
    found = []
    for line in told.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) > 4 and kind:
            point = _ESCAPE.sub(lambda code: chr(int(code[1], 8)), fields[4])
            found.append(_Mount(point, kind[0]))
    return found
