"""Why a life ended: the evidence, gathered once it has."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast._system.memory_events import OomWatch
from holdfast._system.process import Process
from holdfast._system.remains import Remains
from holdfast.errors import Verdict
from holdfast.errors.base import size

from .berth import Berth

_SHARED = "/dev/shm"
_NEAR = 0.8  # of a limit of time: the kernel counts by ticks when it looks at that, and exactly when it is asked
_OUT_OF_MEMORY = ("bad_alloc", "MemoryError", "Cannot allocate memory", "can't allocate memory", "out of memory")


def examine(berth: Berth, watch: OomWatch, first: int = 0, indices: Sequence[Any] | None = None) -> Verdict:
    """Why it ended; it must have, and what it said must have been heard. ``first`` is the number of the epoch's first
    batch, ``indices`` are those of the batch that it was loading."""
    process, stderr = berth.process, berth.process.last_words()
    if process.failure:
        return Verdict(None, process.failure, stderr=stderr)
    stack = berth.logbook.crash_stack()
    seen = Verdict(process.exitcode, stack, stderr=stderr, doing=_doing(berth, first, indices))
    seen = replace(seen, limits=_limits(seen.signal, process.remains, stack + stderr), ended_by_us=process.ended_by_us)
    if seen.signal != "SIGKILL" or seen.limits or seen.ended_by_us:
        return seen
    oom, not_oom = _oom(process, watch)
    return replace(seen, oom=oom, not_oom=not_oom)


def _doing(berth: Berth, first: int, indices: Sequence[Any] | None) -> str:
    entry = berth.logbook.read()
    doing = replace(entry, batch=entry.batch - first).words(indices)
    ended = berth.process.remains.ended  # without it, nobody knows for how long
    return f"{doing} for {ended - entry.since:.1f} s" if ended > entry.since > 0 else doing


def _oom(process: Process, watch: OomWatch) -> tuple[str, str]:
    """What the OOM killer did, or how we know that it did not."""
    kill, kills = watch.killed(), watch.kills()
    if kill is None:
        return "", f"not the kernel's OOM killer (oom_kill unchanged at {kills})" if kills is not None else ""
    counted = f"oom_kill {kill.before} -> {kill.after}"
    held = f"; this worker had held up to {size(process.remains.peak)}" if process.remains.peak else ""
    if kill.limit is None:
        return f"the memory of this machine ran out: {counted}, no limit of a container was reached{held}", ""
    return f"the memory limit of this container was reached: {counted}, limit {size(kill.limit)}{held}", ""


def _limits(signal: str | None, remains: Remains, said: str) -> str:
    """The limit that was reached; empty when there is no sign of one."""
    cpu = {"SIGXCPU": remains.cpu_limit, "SIGKILL": remains.cpu_hard_limit}.get(signal or "", -1)
    if 0 <= cpu * _NEAR <= remains.cpu:
        return f"the limit of processor time was reached: RLIMIT_CPU {cpu} s, used {remains.cpu:.1f} s"
    if signal == "SIGXFSZ" and remains.file_limit >= 0:
        return f"the limit of a file's size was reached: RLIMIT_FSIZE {size(remains.file_limit)}"
    if signal == "SIGBUS":
        return _full(_SHARED)
    if remains.address_limit >= 0 and any(words in said for words in _OUT_OF_MEMORY):
        return f"the limit of memory was reached: RLIMIT_AS {size(remains.address_limit)}"
    return ""


def _full(folder: str) -> str:
    try:
        found = os.statvfs(folder)
    except OSError:
        return ""
    total = found.f_blocks * found.f_frsize
    return f"{folder} is full: all of its {size(total)} are used" if total and not found.f_bavail else ""
