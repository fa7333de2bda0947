"""What Linux says of a process: one look, and details on request.

A number is that of a process, which stands for its main thread, or of any thread. Nothing here waits for the process
that is looked at, and nothing fails because it ends meanwhile or because the system does not tell. The exceptions are
``memory`` and ``library``: they take a lock that a thread in state D may hold for ever, so ask ``is_readable`` first.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from . import syscalls

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100  # in a second


@dataclass(frozen=True, slots=True)
class Call:
    """The system call that a thread is in. ``name`` is empty for a wait outside of any: a page that is read in."""

    name: str
    arguments: tuple[int, ...]
    program_counter: int


@dataclass(frozen=True, slots=True)
class Look:
    """One thread at one moment. None and empty where the system did not say; ``denied`` tells why."""

    pid: int
    at: float
    state: str | None  # one letter, as in ps; X when there is no such process
    wchan: str  # the function of the kernel in which it sleeps
    call: Call | None
    cpu: float  # seconds that it has run
    queued: float  # seconds that it has been ready to run, and others were served
    sleeps: int  # how often it has gone to sleep by itself
    tracer: int  # pid of its debugger
    denied: tuple[str, ...]


def look(pid: int) -> Look:
    denied: list[str] = []
    folder = f"/proc/{pid}/task/{pid}"
    state = _state(folder, denied)
    if state is None and os.path.isdir("/proc/self/task") and not os.path.isdir(folder):
        state = "X"
    status = _status(folder)
    wchan = _read(f"{folder}/wchan", denied)
    wchan = "" if wchan == "0" else wchan
    call = _call(_read(f"{folder}/syscall", denied), wchan)
    cpu, queued = _times(folder)
    sleeps, tracer = int(status.get("voluntary_ctxt_switches", 0)), int(status.get("TracerPid", 0))
    return Look(pid, time.monotonic(), state, wchan, call, cpu, queued, sleeps, tracer, tuple(denied))


def thread_states(pid: int) -> dict[int, str]:
    """The states of all threads of the process that ``pid`` belongs to."""
    try:
        threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return {}
    found = {thread: _state(f"/proc/{pid}/task/{thread}", []) for thread in threads}
    return {thread: state for thread, state in found.items() if state}


def is_readable(pid: int) -> bool:
    """Whether no thread of the process can be holding its memory's lock while it waits for a dead disk."""
    return "D" not in thread_states(pid).values()


def children(pid: int) -> list[str]:
    """Processes that it started and that are still there, as "4711 (ffmpeg)"."""
    numbers: list[str] = []
    for thread in thread_states(pid):
        numbers += text(f"/proc/{pid}/task/{thread}/children").split()
    return [f"{child} ({name(int(child))})" for child in numbers]


def name(pid: int) -> str:
    """The name of its program; empty when it has ended."""
    return text(f"/proc/{pid}/comm")


def catches(pid: int, signal_number: int) -> bool:
    """Whether it has a handler for this signal."""
    return _has(_status(f"/proc/{pid}/task/{pid}"), "SigCgt", signal_number)


def ignores(pid: int, signal_number: int) -> bool:
    """Whether the signal does nothing at all to it, by its own will."""
    return _has(_status(f"/proc/{pid}/task/{pid}"), "SigIgn", signal_number)


def handles(pid: int, signal_number: int) -> bool:
    """Whether the signal is on its way to it, or its main thread is inside of the handler: there it is blocked."""
    status = _status(f"/proc/{pid}/task/{pid}")
    return any(_has(status, mask, signal_number) for mask in ("SigPnd", "ShdPnd", "SigBlk"))


def memory(pid: int, address: int, size: int) -> bytes:
    """Bytes of its memory; empty when they may not be read."""
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as pages:
            pages.seek(address)
            return pages.read(size)
    except (OSError, ValueError, OverflowError):
        return b""


def library(pid: int, address: int) -> str:
    """The file name of the library that this address of its program lies in."""
    for line in text(f"/proc/{pid}/maps").splitlines():
        span, _, path = line.partition(" ")
        begin, _, end = span.partition("-")
        if int(begin, 16) <= address < int(end, 16):
            return os.path.basename(path.split(maxsplit=4)[-1]) if "/" in path else ""
    return ""


def text(path: str) -> str:
    """The contents of a file; empty when it is not to be read."""
    return _read(path, [])


def _state(folder: str, denied: list[str]) -> str | None:
    after_name = _read(f"{folder}/stat", denied).rpartition(")")[2].split()
    return after_name[0] if after_name else None


def _times(folder: str) -> tuple[float, float]:
    """Seconds on the CPU, and in the queue for it; in steps of 10 ms and without the queue where a kernel has less."""
    exact = text(f"{folder}/schedstat").split()
    if len(exact) >= 2:
        return int(exact[0]) / 1e9, int(exact[1]) / 1e9
    after_name = text(f"{folder}/stat").rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) / _TICKS, 0.0


def _call(told: str, wchan: str) -> Call | None:
    numbers = told.split()
    if not numbers or not numbers[0].lstrip("-").isdigit():
        return None  # "running"
    number, values = int(numbers[0]), tuple(int(value, 16) for value in numbers[1:])
    return Call(syscalls.name(number, wchan) if number >= 0 else "", values[:6], values[-1])


def _status(folder: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text(f"{folder}/status").splitlines())
    return {key: value.strip() for key, _, value in lines}


def _has(status: dict[str, str], mask: str, signal_number: int) -> bool:
    return bool(int(status.get(mask, "0"), 16) >> (signal_number - 1) & 1)


def _read(path: str, denied: list[str]) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""  # it has ended, perhaps just now; or this system has no such file
    except OSError as error:
        denied.append(f"{path}: {error.strerror}")
        return ""
