"""How much of the CPU we may use: the cores that we may run on, and what the container allows of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from . import cgroups


class Cpus(NamedTuple):
    """``periods`` have been counted since the container began, and in ``throttled`` of them it was made to wait."""

    machine: int
    affinity: int  # cores that this process may run on
    quota: float | None = None  # CPUs, of the container; None without a limit
    periods: int = 0
    throttled: int = 0

    @property
    def allowed(self) -> float:
        return min(self.affinity, self.quota or self.affinity)


def cpus(ours: Path = cgroups.OURS, mounts: Path = cgroups.MOUNTS) -> Cpus:
    machine = os.cpu_count() or 1
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else machine
    limited = [
        (quota, folder)
        for folder, version in cgroups.groups("cpu", ours, mounts)
        if (quota := _quota(folder, version)) is not None
    ]
    if not limited:
        return Cpus(machine, affinity)
    quota, folder = min(limited)
    stat = folder / "cpu.stat"  # which has these two in both versions
    return Cpus(
        machine, affinity, quota, cgroups.entry(stat, "nr_periods") or 0, cgroups.entry(stat, "nr_throttled") or 0
    )


def _quota(folder: Path, version: int) -> float | None:
    if version == 2:
        first, *period = "".join(cgroups.lines(folder / "cpu.max")[:1]).split() or ["max"]
        return int(first) / int(period[0]) if period and first.isdigit() else None
    quota, length = cgroups.number(folder / "cpu.cfs_quota_us"), cgroups.number(folder / "cpu.cfs_period_us")
    return quota / length if quota and length else None  # "-1", no quota, is no number here
