"""Starting a fresh Python interpreter that finds what this one finds."""

from __future__ import annotations

import os
import subprocess
import sys

_THREAD_POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def command(code: str) -> list[str]:
    """A command line that runs ``code`` with this process' flags and import path; ``__main__`` is not run."""
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [sys.executable, *flags, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]


def quiet_environ() -> dict[str, str]:
    """The environment for a process that will fork or do one thing: no thread pools of numeric libraries."""
    return {**os.environ, **dict.fromkeys(_THREAD_POOLS, "1")}


def current_directory() -> str:
    """Empty when it was removed under us."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""
