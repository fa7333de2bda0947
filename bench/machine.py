"""What the figures were taken on, and with which versions. Ratios hold for this machine only."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
from pathlib import Path
from typing import Any

REQUIREMENTS = Path(__file__).parent / "requirements.txt"
ALSO = ("holdfast", "torch", "numpy")
_PASSING = ("date", "load_start", "load_end", "quick", "seconds")  # what another run on the same machine may differ in


def facts(*, quick: bool) -> dict[str, Any]:
    return {
        "date": now(),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_start": load(),
        "quick": quick,
        "versions": versions(),
    }


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether results of both may stand in one table."""
    return _lasting(one) == _lasting(other) and one.get("quick") == other.get("quick")


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def load() -> list[float]:
    return [round(value, 2) for value in os.getloadavg()]


def versions() -> dict[str, str]:
    """By distribution, "" where it is not installed."""
    return {name: _version(name) for name in [*ALSO, *required()]}


def required() -> list[str]:
    """The distributions that ``bench/requirements.txt`` names."""
    lines = (line.split("#")[0].strip() for line in REQUIREMENTS.read_text().splitlines())
    found = (re.match(r"[A-Za-z0-9._-]+", line) for line in lines)
    return [match.group() for match in found if match is not None and not match.group().startswith("-")]


def _lasting(one: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name not in _PASSING}


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _cpu() -> str:
    try:
        models = re.findall(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        models = []
    return models[0].strip() if models else platform.processor() or platform.machine()
