"""How much memory is left for us: what the machine has, and what the container allows."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import psutil

_MOUNTS = Path("/sys/fs/cgroup")
_OURS = Path("/proc/self/cgroup")
_NO_LIMIT = 1 << 60  # cgroup v1 writes a number of about this size where v2 writes "max"


def memory_room() -> int:
    """Bytes that can be used before the machine or the container runs out."""
    room = int(psutil.virtual_memory().available)
    limits = (group.room() for group in memory_groups())
    return max(0, min([room, *(limit for limit in limits if limit is not None)]))


def own_memory() -> int:
    """Bytes that this process alone has: not the data set and the batches that it shares with others."""
    try:
        found = psutil.Process().memory_info()
    except psutil.Error:
        return 0
    return int(found.rss - getattr(found, "shared", 0))


class MemoryGroup(NamedTuple):
    """One memory cgroup, of either version. What cannot be read is None."""

    folder: Path
    version: int

    def limit(self) -> int | None:
        limit = self._number("memory.max", "memory.limit_in_bytes")
        return limit if limit is not None and limit < _NO_LIMIT else None

    def room(self) -> int | None:
        limit, usage = self.limit(), self._number("memory.current", "memory.usage_in_bytes")
        if limit is None or usage is None:
            return None
        return limit - usage + (self._entry("memory.stat", "inactive_file", "total_inactive_file") or 0)

    def oom_kills(self) -> int | None:
        """Processes of this group that the kernel has ended for want of memory. Version 2 counts the groups inside."""
        return self._entry("memory.events" if self.version == 2 else "memory.oom_control", "oom_kill", "oom_kill")

    def limit_hits(self) -> int | None:
        """How often this group's own limit was in the way."""
        return self._entry("memory.events", "oom", "") if self.version == 2 else self._number("", "memory.failcnt")

    def _number(self, of_v2: str, of_v1: str) -> int | None:
        text = "".join(_lines(self.folder / (of_v2 if self.version == 2 else of_v1))[:1])
        return int(text) if text.isdigit() else None

    def _entry(self, file: str, of_v2: str, of_v1: str) -> int | None:
        name = of_v2 if self.version == 2 else of_v1
        values = (line.split()[1] for line in _lines(self.folder / file) if line.startswith(name + " "))
        return next((int(value) for value in values), None)


def memory_groups(ours: Path = _OURS, mounts: Path = _MOUNTS) -> list[MemoryGroup]:
    """The memory groups of this process, each followed by those that it lies in."""
    found = []
    for line in _lines(ours):
        number, controllers, path = line.split(":", 2)
        if number == "0":
            found += [MemoryGroup(at, 2) for at in _up_from(mounts, path)]
        elif "memory" in controllers.split(","):
            found += [MemoryGroup(at, 1) for at in _up_from(mounts / "memory", path)]
    return found


def _up_from(root: Path, path: str) -> list[Path]:
    """A group and all that it lies in, whose limits hold as well. A container may see its own group as the root, under
    another path than it is told: then only the root is there."""
    inside = Path(path.lstrip("/"))
    return [root / inside, *(root / outer for outer in inside.parents)]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
