"""What processes use: time on the CPU and in the queue for it, memory, descriptors."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

from holdfast._system import proc


@dataclass(frozen=True)
class Usage:
    """Of one process, at one moment. ``uss`` is what ends with it, ``pss`` its share of what several have."""

    cpu: float
    queued: float
    uss: int
    pss: int
    descriptors: int


@dataclass(frozen=True)
class Reading:
    """Of the processes that load, by pid; and what the trainer has computed."""

    at: float
    samples: int
    trainer: float  # seconds of CPU
    processes: dict[int, Usage]


def read(pids: Iterable[int], samples: int) -> Reading:
    used = {pid: usage for pid in pids if (usage := _usage(pid)) is not None}
    return Reading(time.monotonic(), samples, time.process_time(), used)


def _usage(pid: int) -> Usage | None:
    try:
        process = psutil.Process(pid)
        times, memory = process.cpu_times(), process.memory_full_info()
        descriptors = process.num_fds() if hasattr(process, "num_fds") else 0
    except (psutil.Error, OSError):
        return None  # it has ended, or is not ours to look at
    uss, pss = int(memory.uss), int(getattr(memory, "pss", memory.uss))
    return Usage(times.user + times.system, proc.look(pid).queued, uss, pss, descriptors)
