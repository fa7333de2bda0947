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
            here = _V2 / path.lstrip("/")
            found.append((here / "memory.max", here / "memory.current", here / "memory.stat", "inactive_file"))
        elif "memory" in controllers.split(","):
            here = _V1 / path.lstrip("/")
            files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat")
            found.append((here / files[0], here / files[1], here / files[2], "total_inactive_file"))
    return found


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
