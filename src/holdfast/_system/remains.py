"""What the kernel still knows of a process that has ended, until somebody waits for it."""

from __future__ import annotations

import os
import signal
import struct
from typing import NamedTuple

FORMAT = struct.Struct("<qqqqdqd")
_NAMES = ("RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_AS")


class Remains(NamedTuple):
    """Limits are -1 where there was none, or none is known."""

    cpu_limit: int = -1  # seconds
    cpu_hard_limit: int = -1
    file_limit: int = -1
    address_limit: int = -1
    cpu: float = 0.0  # seconds used
    peak: int = 0  # bytes of memory held at most
    ended: float = 0.0  # by the monotonic clock; 0.0 when nobody was there to see it


def reap(pid: int = -1) -> tuple[int, int, Remains] | None:
    """A child that has ended: pid, exit status as in subprocess, remains. None when none has, `ChildProcessError` when
    there is none at all."""
    if hasattr(os, "waitid"):
        kind, number = (os.P_PID, pid) if pid > 0 else (os.P_ALL, 0)
        dead = os.waitid(kind, number, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if dead is None:
            return None
        pid = dead.si_pid
    cpu, file, address = _limits_of(pid)
    pid, status, usage = os.wait4(pid, os.WNOHANG)
    if not pid:
        return None
    exitcode, used = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
    soft = cpu[0] - 1 if exitcode == -signal.SIGXCPU else cpu[0]  # the kernel adds one when it sends that
    return pid, exitcode, Remains(soft, cpu[1], file[0], address[0], used, usage.ru_maxrss << 10)


def _limits_of(pid: int) -> list[tuple[int, int]]:
    """Soft and hard. They outlive the process for as long as it is a zombie."""
    import resource  # not on Windows

    try:
        return [resource.prlimit(pid, getattr(resource, name)) for name in _NAMES]
    except (AttributeError, OSError):  # not on macOS; or it had become another user's
        return [(-1, -1)] * len(_NAMES)
