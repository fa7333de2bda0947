"""The life of a worker, seen from inside: what it made for itself, and what is closed when it ends.

A life is a process, or a thread of the trainer that is a worker; other threads belong to the life of their process. A
life that ends normally (told to close, recycled, the end of the program) closes what was made in it, latest first. One
that is killed closes nothing: that is the kernel's part.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.util import Finalize
from typing import Any, TypeVar

T = TypeVar("T")
Close = Callable[[], object]


class Life:
    """Owns what was made in it: ``made``, by keys of whoever makes things, and how to close it."""

    def __init__(self) -> None:
        self.made: dict[object, Any] = {}
        self.closers: dict[object, Close] = {}
        self._locks: dict[object, threading.RLock] = {}
        self._pid = os.getpid()
        _alive.add(self)

    def lock(self, key: object) -> threading.RLock:
        """For making what belongs under this key. Nobody inherits it: a fork is another life."""
        return self._locks.setdefault(key, threading.RLock())

    def let_go(self, key: object) -> None:
        """Close now what was made under this key. Harmless when that was done before, and in a fork of the maker."""
        if os.getpid() == self._pid:
            self.made.pop(key, None)
            self._locks.pop(key, None)
            _call(self.closers.pop(key, _nothing))

    def end(self) -> None:
        """Close everything, latest first. Errors are printed: nobody is left to catch them."""
        while self.closers:
            key, close = self.closers.popitem()
            self.made.pop(key, None)
            _call(close)
        _alive.discard(self)


# In a fork, the lives of its parent stay here untouched: a file that is dropped writes its buffer, the parent's bytes,
# a second time.
_alive: set[Life] = set()


class _Here(threading.local):
    """The class has the life of the process; a worker thread has its own."""

    life = Life()


_here = _Here()
_finalizer: Finalize | None = None


def current() -> Life:
    """The life that this code runs in."""
    return _here.life


def at_end(close: Close, key: object = None) -> None:
    """Have ``close`` called when this worker's life ends normally, or when it lets go of ``key``."""
    life = _here.life
    life.closers[key if key is not None else object()] = close
    if life is _Here.life:
        _end_with_the_process()


@contextmanager
def of_this_thread() -> Iterator[None]:
    """The life of a worker thread."""
    life = _here.life = Life()
    try:
        yield
    finally:
        life.end()


def is_recipe(thing: object) -> bool:
    """Whether it is a ``per_worker``, which is made where it is first looked into."""
    return hasattr(type(thing), "_holdfast_own")


def unwrap(thing: T) -> T:
    """What a ``per_worker`` stands for, in this life; everything else is itself."""
    own: Callable[[T], T] | None = getattr(type(thing), "_holdfast_own", None)
    return own(thing) if own is not None else thing


def _end_with_the_process() -> None:
    """In the trainer and in children of ``multiprocessing``, which knows the end of both. Our own worker processes
    leave by ``os._exit`` and say themselves when they end."""
    global _finalizer
    if _finalizer is None:
        _finalizer = Finalize(None, _Here.life.end, exitpriority=10)


def _call(close: Close) -> None:
    try:
        close()
    except Exception:
        print("holdfast: at the end of a worker's life", file=sys.stderr)
        traceback.print_exc()


def _nothing() -> None: ...


def _begin_in_fork() -> None:
    global _finalizer
    _finalizer = None
    vars(_here).pop("life", None)  # it was a worker thread that forked
    _Here.life = Life()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_fork)
