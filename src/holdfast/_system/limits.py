"""How much memory is left for us: what the machine has, and what the container allows."""

from __future__ import annotations

from pathlib import Path

import psutil

_V2 = Path("/sys/fs/cgroup")
_V1 = Path("/sys/fs/cgroup/memory")


def memory_room() -> int:
    """Bytes that can be used before the machine or the container runs out."""
    room = int(psutil.virtual_memory().available)
    limits = (_room_of(*files) for files in _memory_files())
    return max(0, min([room, *(limit for limit in limits if limit is not None)]))


def _memory_files() -> list[tuple[Path, Path, Path, str]]:
    """(limit, usage, statistics, name of the reclaimable share) of this process' memory groups."""
    found = []
    for line in _lines(Path("/proc/self/cgroup")):
        number, controllers, path = line.split(":", 2)
        if number == "0":
            for at in _up_from(_V2, path):
                found.append((at / "memory.max", at / "memory.current", at / "memory.stat", "inactive_file"))
        elif "memory" in controllers.split(","):
            for at in _up_from(_V1, path):
                limit, usage = at / "memory.limit_in_bytes", at / "memory.usage_in_bytes"
                found.append((limit, usage, at / "memory.stat", "total_inactive_file"))
    return found


def _up_from(root: Path, path: str) -> list[Path]:
    """A group and all that it lies in, whose limits hold as well. A container may see its own group as the root, under
    another path than it is told: then only the root is there."""
    inside = Path(path.lstrip("/"))
    return [root / inside, *(root / outer for outer in inside.parents)]


def _room_of(limit: Path, usage: Path, statistics: Path, reclaimable: str) -> int | None:
    values = [text for text in (*_lines(limit)[:1], *_lines(usage)[:1]) if text.isdigit()]
    if len(values) < 2:
        return None  # no limit, or none that we may see
    cache = (int(line.split()[1]) for line in _lines(statistics) if line.startswith(reclaimable + " "))
    return int(values[0]) - int(values[1]) + next(cache, 0)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
