"""The other threads of this process, which a fork would leave behind together with the locks they hold."""

from __future__ import annotations

import _thread
import gc
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import psutil

KEEPER = "holdfast-keeper"  # a thread of ours: whoever starts a worker has the lock without which it does nothing
_RUNS = "_tstate_lock"  # of a thread, which holds it for as long as it runs
_KINDS = (_thread.LockType, type(threading.RLock()))
EXAMINED = 20  # held locks that are looked into; each costs a walk through all objects


@dataclass(frozen=True, slots=True)
class Company:
    """False when the calling thread is alone."""

    python: tuple[str, ...]  # names
    native: int  # threads of libraries, of which Python knows nothing

    def __bool__(self) -> bool:
        return bool(self.python or self.native)

    def __str__(self) -> str:
        parts = []
        if self.python:
            parts.append(f"{len(self.python)} of Python ({', '.join(self.python)})")
        if self.native:
            parts.append(f"{self.native} of native libraries")
        return " and ".join(parts) or "none"


def company() -> Company:
    threads = threading.enumerate()
    names = [thread.name for thread in threads if thread is not threading.current_thread() and thread.name != KEEPER]
    return Company(tuple(names), max(0, psutil.Process().num_threads() - len(threads)))


def held_locks() -> list[str]:
    """Locks that are held now, as module and attribute or class and attribute. Those without a name are left out."""
    of_modules = dict(_of_modules())
    found = (lock for lock in gc.get_objects() if _is_lock(lock) and id(lock) not in of_modules)
    others = (next(_names(lock), None) for lock in islice(filter(_is_held, found), EXAMINED))
    modules = (name for name, lock in of_modules.values() if _is_held(lock))
    return sorted({*modules, *(name for name in others if name is not None)})


def _of_modules() -> Iterator[tuple[int, tuple[str, Any]]]:
    """By identity: names and locks. Not by asking the collector, which does not know what a program has frozen."""
    for module, members in [(name, getattr(module, "__dict__", {})) for name, module in sys.modules.items()]:
        if module != "threading":
            yield from (
                (id(value), (f"{module}.{key}", value)) for key, value in list(members.items()) if _is_lock(value)
            )


def _is_lock(thing: object) -> bool:
    """By its true type: isinstance would ask proxies for their __class__, and some warn of being asked."""
    return issubclass(type(thing), _KINDS)


def _is_held(lock: Any) -> bool:
    if hasattr(lock, "_is_owned") and lock._is_owned():
        return False  # by this thread, which goes on in the fork
    return lock.locked() if hasattr(lock, "locked") else repr(lock).startswith("<locked")  # RLocks before Python 3.14


def _names(lock: object) -> Iterator[str]:
    for owner in gc.get_referrers(lock):
        if isinstance(owner, dict):
            yield from _names_in(owner, lock)
        elif hasattr(owner, "__dict__") and not isinstance(owner, type):
            yield from _attributes(type(owner).__module__, type(owner).__qualname__, vars(owner), lock)


def _names_in(members: dict[Any, Any], lock: object) -> Iterator[str]:
    for owner in gc.get_referrers(members):
        if getattr(owner, "__dict__", None) is members:
            yield from _attributes(type(owner).__module__, type(owner).__qualname__, members, lock)


def _attributes(module: str, owner: str, members: dict[Any, Any], lock: object) -> Iterator[str]:
    if module != "threading":
        yield from (f"{owner}.{key}" for key, value in members.items() if value is lock and key != _RUNS)
