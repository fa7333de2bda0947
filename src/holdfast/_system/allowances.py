"""How many descriptors, maps and processes this process may have, and has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from . import cgroups


class Allowances(NamedTuple):
    """None: no limit, or none that the system tells."""

    descriptors: int | None = None
    descriptors_at_most: int | None = None  # what the limit can be raised to without being root
    descriptors_open: int = 0
    address_space: int | None = None  # bytes
    address_space_used: int = 0
    maps: int | None = None
    maps_used: int = 0
    processes_left: int | None = None  # threads count, too


def allowances() -> Allowances:
    descriptors, at_most = _limit("RLIMIT_NOFILE")
    return Allowances(
        descriptors=descriptors,
        descriptors_at_most=at_most,
        descriptors_open=_descriptors_open(),
        address_space=_limit("RLIMIT_AS")[0],
        address_space_used=_address_space_used(),
        maps=cgroups.number(Path("/proc/sys/vm/max_map_count")),
        maps_used=len(cgroups.lines(Path("/proc/self/maps"))),
        processes_left=_processes_left(),
    )


def _limit(name: str) -> tuple[int | None, int | None]:
    """Soft and hard."""
    try:
        import resource  # not on Windows
    except ImportError:
        return None, None
    soft, hard = (
        None if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(getattr(resource, name))
    )
    return soft, hard


def _descriptors_open() -> int:
    try:
        return len(os.listdir("/proc/self/fd")) - 1  # without that of this listing
    except OSError:
        return 0


def _address_space_used() -> int:
    pages = "".join(cgroups.lines(Path("/proc/self/statm"))[:1]).split()
    return int(pages[0]) * os.sysconf("SC_PAGE_SIZE") if pages else 0


def _processes_left() -> int | None:
    left = []
    for folder, _ in cgroups.groups("pids"):
        most, now = cgroups.number(folder / "pids.max"), cgroups.number(folder / "pids.current")
        if most is not None and now is not None:
            left.append(max(0, most - now))
    return min(left, default=None)
