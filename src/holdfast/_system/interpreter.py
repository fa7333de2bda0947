"""Starting a fresh Python interpreter that finds what this one finds."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# glibc, told what workers do all day.
# Copies from half a MiB on go past the cache (as a rule only those of about its size do): a worker does not read again
# what it has stacked. 256 images of 3x224x224 are then stacked in 14 ms, not 25.
# Buffers of up to 32 MiB come from the heap, and 64 MiB of it are kept when they are free: as a rule the pages of every
# decoded image are given to the kernel and zeroed anew for the next one.
_GLIBC = (
    "glibc.cpu.x86_non_temporal_threshold=0x80000",
    "glibc.malloc.mmap_threshold=0x2000000",
    "glibc.malloc.trim_threshold=0x4000000",
)
_THREAD_POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def command(code: str) -> list[str]:
    """A command line that runs ``code`` with this process' flags and import path; ``__main__`` is not run."""
    import subprocess  # late: who is started itself needs it for nothing

    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [sys.executable, *flags, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]


def worker_environ() -> dict[str, str]:
    """The environment to start a worker with: no thread pools of numeric libraries, and copies that stream.

    What is read once, at the start of a process, must be set here; the worker takes over the trainer's own environment
    before the user's code runs.
    """
    theirs = os.environ.get("GLIBC_TUNABLES")
    tunables = ":".join([*_GLIBC, theirs] if theirs else _GLIBC)
    made = {**os.environ, **dict.fromkeys(_THREAD_POOLS, "1"), "GLIBC_TUNABLES": tunables}
    made.pop("HOLDFAST_RUN", None)  # it has nothing to adopt while it starts, and starts the sooner
    return made


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Numeric libraries that are loaded in here make no pools of threads."""
    before = {name: os.environ.get(name) for name in _THREAD_POOLS}
    os.environ.update(dict.fromkeys(_THREAD_POOLS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """A process started in here does not hear Ctrl-C, which terminals send to the whole group, before it can ignore it.

    The signal is blocked for the moment of the start, and the new process inherits that until it says otherwise.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def current_directory() -> str:
    """Empty when it was removed under us."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""
