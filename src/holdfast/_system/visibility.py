"""Whether a process of ours can be looked into, should it hang: who may trace it, and what there is to do it with."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from . import cgroups
from .proc import text
from .stacks import find_py_spy

_CAP_SYS_PTRACE = 19


class Visibility(NamedTuple):
    """``ptrace_scope``: 0 any process of the same user, 1 only children, 2 only with the capability, 3 nobody."""

    ptrace_scope: int | None = None  # None: the kernel has no such setting, which is as good as 0
    may_trace: bool = False  # has CAP_SYS_PTRACE
    py_spy: bool = False


def visibility() -> Visibility:
    scope = cgroups.number(Path("/proc/sys/kernel/yama/ptrace_scope"))
    held = next((line.split()[1] for line in text("/proc/self/status").splitlines() if line.startswith("CapEff")), "0")
    return Visibility(scope, bool(int(held, 16) >> _CAP_SYS_PTRACE & 1), find_py_spy() is not None)
