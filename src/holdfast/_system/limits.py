"""How much memory is left for us: what the machine has, and what the container allows."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from . import cgroups

_NO_LIMIT = 1 << 60  # cgroup v1 writes a number of about this size where v2 writes "max"


def memory_room() -> int:
    """Bytes that can be used before the machine or the container runs out."""
    import psutil  # late: most programs never ask

    room = int(psutil.virtual_memory().available)
    limits = (group.room() for group in memory_groups())
    return max(0, min([room, *(limit for limit in limits if limit is not None)]))


def own_memory() -> int:
    """Bytes that this process alone has: not the data set and the batches that it shares with others."""
    import psutil

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
        return cgroups.number(self.folder / (of_v2 if self.version == 2 else of_v1))

    def _entry(self, file: str, of_v2: str, of_v1: str) -> int | None:
        return cgroups.entry(self.folder / file, of_v2 if self.version == 2 else of_v1)


def memory_groups(ours: Path = cgroups.OURS, mounts: Path = cgroups.MOUNTS) -> list[MemoryGroup]:
    """The memory groups of this process, each followed by those that it lies in."""
    return [MemoryGroup(folder, version) for folder, version in cgroups.groups("memory", ours, mounts)]
