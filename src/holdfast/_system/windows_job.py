"""Processes that the system ends with the trainer, however that ends. For Windows; never run elsewhere.

Written from Microsoft's documentation of job objects and not yet tried on a Windows machine: ``adopt`` therefore
ignores a refusal. A worker that is not adopted still leaves when its connection breaks, unless it is in C code that
holds the GIL.
"""

from __future__ import annotations

import ctypes
import functools
import sys

_EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
_KILL_ON_JOB_CLOSE = 0x2000


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", ctypes.c_uint32),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", ctypes.c_uint32),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", ctypes.c_uint32),
        ("SchedulingClass", ctypes.c_uint32),
    )


class _ExtendedLimits(ctypes.Structure):
    _fields_ = (
        ("BasicLimitInformation", _BasicLimits),
        ("IoInfo", ctypes.c_uint64 * 6),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    )


def adopt(handle: int) -> None:
    """The process of this handle ends when this one does. Does nothing elsewhere than on Windows."""
    if sys.platform == "win32":
        ctypes.windll.kernel32.AssignProcessToJobObject(ctypes.c_void_p(_job()), ctypes.c_void_p(handle))


@functools.cache
def _job() -> int | None:
    """The one job of this process. Never closed: the system closes it when we end, and that ends its members."""
    if sys.platform == "win32":
        create = ctypes.windll.kernel32.CreateJobObjectW
        create.restype = ctypes.c_void_p
        job: int = create(None, None)
        limits = _ExtendedLimits()
        limits.BasicLimitInformation.LimitFlags = _KILL_ON_JOB_CLOSE
        ctypes.windll.kernel32.SetInformationJobObject(
            ctypes.c_void_p(job), _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
        )
        return job
    return None
