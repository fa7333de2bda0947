"""What the kernel's OOM killer has done to us, from the counters of our memory groups."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .limits import MemoryGroup, memory_groups


class OomKill(NamedTuple):
    """The kernel ended a process of ours because memory was out: the counter ``oom_kill`` before and after that."""

    before: int
    after: int
    limit: int | None  # bytes, of the group that was full; None when it was the machine itself
    group: str


class OomWatch:
    """Remembers the counters as they are now. A kill that was told of is evidence for that one death and no other,
    also where several crews watch the same counter."""

    def __init__(self, groups: list[MemoryGroup] | None = None) -> None:
        self._groups = memory_groups() if groups is None else groups
        # Where we are counted. The groups around it count others too (version 2), or not us (version 1).
        self._counted = next((group for group in self._groups if group.oom_kills() is not None), None)
        self._before = self.kills() or 0
        self._hits = {group: group.limit_hits() or 0 for group in self._groups}

    def kills(self) -> int | None:
        """As the counter stands; None when there is none that we may see, as in kernels before 4.13."""
        return self._counted.oom_kills() if self._counted is not None else None

    def killed(self) -> OomKill | None:
        """A kill that has not been told of."""
        now, group = self.kills(), self._counted
        if now is None or group is None:
            return None
        known = max(self._before, _told.get(group.folder, 0))
        if now <= known:
            return None
        _told[group.folder] = known + 1
        full = self._full()
        return OomKill(known, known + 1, full.limit() if full else None, str((full or group).folder))

    def _full(self) -> MemoryGroup | None:
        """The innermost group whose limit was in the way since we watch."""
        hit = (group for group, before in self._hits.items() if (group.limit_hits() or 0) > before)
        return next((group for group in hit if group.limit() is not None), None)


_told: dict[Path, int] = {}  # by group: the counter, up to the last kill that was told of
