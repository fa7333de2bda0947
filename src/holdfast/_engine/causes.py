"""What a silent process waits for, from two looks at it: a kind, and a sentence with the evidence."""

from __future__ import annotations

import enum
import threading
from typing import NamedTuple

from holdfast._system import descriptors, proc
from holdfast._system.descriptors import Descriptor, Sort
from holdfast._system.proc import Call, Look

BUSY = 0.3  # share of the time on the CPU, or in the queue for it, from which on it counts as running
_SHOWN = 3  # descriptors that are named
_PRIVATE = 128  # flag of a futex that only threads of one process can use
_SLEEPS = ("clock_nanosleep", "nanosleep", "pause", "rt_sigsuspend", "rt_sigtimedwait")
_WAITS_FOR_CHILD = ("wait4", "waitid")
_OPENMP = ("libgomp", "libomp", "libiomp")
_OF_NOTHING = {"poll": 1, "ppoll": 1, "select": 0, "pselect6": 0}  # which argument is the number of descriptors
_FROZEN = ("do_freezer_trap", "get_signal")  # the former is compiled into the latter, as a rule
_WAIT_FOR_LOCK = (7, 38)  # commands of fcntl: F_SETLKW, F_OFD_SETLKW


class Kind(enum.Enum):
    LOCK = "lock"
    OPENMP = "OpenMP"
    SOCKET = "socket"
    PIPE = "pipe"
    FILE = "file"
    SLEEP = "sleep"
    LOOP = "loop"
    STOPPED = "stopped"
    UNINTERRUPTIBLE = "uninterruptible"
    CHILD = "child"
    GONE = "gone"
    UNKNOWN = "unknown"


class Cause(NamedTuple):
    kind: Kind
    why: str  # continues a sentence that begins with the worker


def at_once(look: Look) -> Cause | None:
    """What one look explains."""
    if look.state in ("X", "Z"):
        return Cause(Kind.GONE, "has ended")
    if look.state == "T":
        return Cause(Kind.STOPPED, f"is stopped (SIGSTOP): kill -CONT {look.pid} lets it go on")
    if look.state == "t":
        return Cause(Kind.STOPPED, f"is held by a debugger: process {look.tracer} ({proc.name(look.tracer)})")
    if look.wchan in _FROZEN:
        return Cause(Kind.STOPPED, "is frozen together with its control group, as by docker pause")
    return None


def between(first: Look, then: Look) -> Cause:
    """What two looks explain, a moment apart."""
    explained = at_once(then) or _running(first, then)
    if explained:
        return explained
    asleep = then if then.call else first
    if first.state == then.state == "D":
        return Cause(Kind.UNINTERRUPTIBLE, f"waits in the kernel, where no signal reaches it{_where(asleep)}")
    if asleep.call is None:
        return Cause(Kind.UNKNOWN, "waits, and the system does not tell for what")
    kind, why = _waiting(asleep, asleep.call)
    woken = then.sleeps - first.sleeps
    return Cause(kind, f"{why}; it woke {woken} times in {then.at - first.at:.2f} s" if woken > 1 else why)


def _running(first: Look, then: Look) -> Cause | None:
    seconds, used, queued = then.at - first.at, then.cpu - first.cpu, then.queued - first.queued
    if used + queued < BUSY * seconds and not (first.state == then.state == "R"):
        return None
    others = f", and queued for it for {queued:.2f} s" if queued > used else ""
    return Cause(Kind.LOOP, f"runs on the CPU ({used:.2f} of {seconds:.2f} s{others}): an endless loop, or very slow")


def _where(look: Look) -> str:
    call = look.call
    if call is None:
        return f" ({look.wchan})" if look.wchan else ""
    if not call.name:
        return f" (reads in a page of a mapped file, {look.wchan})"
    used = _described(look, call)
    return f" ({call.name}, {look.wchan})" + (f" for {used[0]}" if used else "")


def _waiting(look: Look, call: Call) -> Cause:
    if call.name == "futex":
        return _futex(look, call)
    if call.name == "flock" or (call.name == "fcntl" and call.arguments[1] in _WAIT_FOR_LOCK):
        return _file_lock(look, call)
    if call.name in _WAITS_FOR_CHILD:
        return Cause(Kind.CHILD, f"waits in {call.name} for a process that it started{_child(look, call)}")
    if call.name in _SLEEPS:
        return Cause(Kind.SLEEP, f"sleeps ({call.name})")
    used = _described(look, call)
    if not used:
        return _without_descriptor(look, call)
    named = ", ".join(map(str, used[:_SHOWN])) + (f" and {len(used) - _SHOWN} more" if len(used) > _SHOWN else "")
    kind = Kind.PIPE if "pipe" in look.wchan else _KINDS[used[0].sort]  # a named pipe looks like a file
    started = proc.children(look.pid)[:_SHOWN] if kind is Kind.PIPE else []
    told = f"; it has started {', '.join(started)}" if started else ""
    return Cause(kind, f"waits in {call.name} for {named}{told}")


_KINDS = {Sort.SOCKET: Kind.SOCKET, Sort.PIPE: Kind.PIPE, Sort.FILE: Kind.FILE, Sort.OTHER: Kind.UNKNOWN}


def _described(look: Look, call: Call) -> list[Descriptor]:
    """What the call is about, connections to elsewhere first: they are what is waited for among the rest."""
    numbers = descriptors.waited_for(look.pid, call)
    used = [found for number in numbers if (found := descriptors.describe(look.pid, number))]
    return sorted(used, key=lambda one: (list(_KINDS).index(one.sort), one.kind == "unix socket"))


def _without_descriptor(look: Look, call: Call) -> Cause:
    if look.wchan == "wait_for_partner":
        return Cause(Kind.PIPE, f"waits in {call.name} for somebody to open the other end of a named pipe")
    if call.name in _OF_NOTHING and not call.arguments[_OF_NOTHING[call.name]]:
        return Cause(Kind.SLEEP, f"sleeps ({call.name} of no descriptor)")
    where = f" ({look.wchan})" if look.wchan else ""
    return Cause(Kind.UNKNOWN, f"waits in {call.name or 'a page fault'}{where}")


def _child(look: Look, call: Call) -> str:
    """The one that it waits for, or those that it has when it waits for any."""
    number = call.arguments[1 if call.name == "waitid" else 0]
    started = proc.children(look.pid)
    meant = [child for child in started if child.startswith(f"{number} (")] or started[:_SHOWN]
    return f": {', '.join(meant)}" if meant else ""


def _file_lock(look: Look, call: Call) -> Cause:
    used = _described(look, call)
    holder = descriptors.file_lock_holder(look.pid)
    held = f", which process {holder} holds" if holder else ""
    return Cause(Kind.LOCK, f"waits in {call.name} for a lock on {used[0] if used else 'a file'}{held}")


def _futex(look: Look, call: Call) -> Cause:
    library = _library(look)
    others = proc.thread_states(look.pid)
    for own in (look.pid, threading.get_native_id()):
        others.pop(own, None)
    if library.startswith(_OPENMP):
        return Cause(Kind.OPENMP, f"waits for a lock (futex) inside {library}: {_openmp(others)}")
    _, operation, _, limit = call.arguments[:4]
    if not operation & _PRIVATE:
        return Cause(Kind.LOCK, "waits for a lock (futex) that is shared with other processes")
    if limit:
        return Cause(Kind.LOCK, f"waits for a lock or an event (futex), with a time limit; {_threads(others)}")
    if others:
        return Cause(Kind.LOCK, f"waits for a lock or an event (futex); {_threads(others)}")
    return Cause(Kind.LOCK, "waits for a lock (futex) that nobody else can release: it is private to its only thread")


def _library(look: Look) -> str:
    if look.call is None or not proc.is_readable(look.pid):
        return ""
    return proc.library(look.pid, look.call.program_counter)


def _threads(others: dict[int, str]) -> str:
    running = [str(thread) for thread, state in others.items() if state == "R"]
    if running:
        return f"thread {running[0]} of the process runs on the CPU"
    if len(others) == 1:
        return "the other thread of the process waits too"
    return f"the {len(others)} other threads of the process wait too" if others else "the process has no other thread"


def _openmp(others: dict[int, str]) -> str:
    looks = [proc.look(thread) for thread in others]
    if any(look.state == "R" or _library(look).startswith(_OPENMP) for look in looks):
        return "for its OpenMP threads, which have not finished"
    return "OpenMP was used before the fork, and no other thread of this process is an OpenMP thread"
