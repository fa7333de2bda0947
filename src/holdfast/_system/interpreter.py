"""Starting a fresh Python interpreter that finds what this one finds."""

from __future__ import annotations

import os
import subprocess
import sys

# glibc copies with stores that go past the cache only from about the size of the cache on. A worker's stacked samples
# are not read again by the worker; with the limit at half a MiB, stacking 256 images of 3x224x224 takes 14 ms, not 25.
_STREAM_COPIES = "glibc.cpu.x86_non_temporal_threshold=0x80000"
_THREAD_POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def command(code: str) -> list[str]:
    """A command line that runs ``code`` with this process' flags and import path; ``__main__`` is not run."""
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [sys.executable, *flags, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]


def worker_environ() -> dict[str, str]:
    """The environment to start a worker with: no thread pools of numeric libraries, and copies that stream.

    What is read once, at the start of a process, must be set here; the worker takes over the trainer's own environment
    before the user's code runs.
    """
    tunables = ":".join(filter(None, (os.environ.get("GLIBC_TUNABLES"), _STREAM_COPIES)))
    return {**os.environ, **dict.fromkeys(_THREAD_POOLS, "1"), "GLIBC_TUNABLES": tunables}


def current_directory() -> str:
    """Empty when it was removed under us."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""
