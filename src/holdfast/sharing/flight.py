"""What is under way to another process: held here until it has arrived.

``queue.put(share(x))`` keeps nothing, and who receives it opens it later. So pickling a handle holds the memory, until
as many have arrived as were sent, or for ``PATIENCE`` seconds: a pickle may never be loaded. Who arrives adds a line to
the sender's log, a file that many can append to at once. It is looked at whenever something is sent, and when the
garbage collector runs: no thread waits for anything.
"""

from __future__ import annotations

import gc
import os
import threading
import weakref
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple

from .files import TOKEN, address_of, fcntl, let_go, new_file, open_at, path_of

PATIENCE = 120.0  # seconds: a spawned process may have to import half the world first


class Address(NamedTuple):
    """Where a sender's log is, and the mark by which it is known."""

    place: str
    mark: bytes


@dataclass
class _Sent:
    memory: object
    count: int
    deadline: float


class _Log:
    """Owns the file in which those who arrive are noted, a token each."""

    def __init__(self) -> None:
        self.mark = os.urandom(TOKEN)
        self.fd, self.path = new_file(self.mark)
        self._read = TOKEN
        self.close = weakref.finalize(self, let_go, self.fd, self.path)
        self.close.atexit = bool(self.path)

    def new_lines(self) -> list[bytes]:
        found = os.pread(self.fd, os.fstat(self.fd).st_size - self._read, self._read)
        self._read += len(found)
        return [found[i : i + TOKEN] for i in range(0, len(found), TOKEN)]

    def address(self) -> Address:
        return Address(address_of(self.fd, self.path), self.mark)


def depart(memory: Any) -> Address:
    """A handle of this memory is being pickled. Returns what the one who loads it tells of its arrival."""
    global _log
    with _guard:
        if _log is None:
            _log = _Log()
            gc.callbacks.append(_look)
        _settle(_log)
        sent = _sent.setdefault(memory.token, _Sent(memory, 0, 0))
        sent.count, sent.deadline = sent.count + 1, monotonic() + PATIENCE
        _seen.add(memory)
        return _log.address()


def arrive(log: Address, token: bytes) -> None:
    """Tell the sender. That one may be gone, or have waited long enough: then nobody wants to know."""
    with suppress(OSError):
        fd = open_at(log.place, log.mark)
        try:
            # To append: the kernel lets no two who arrive at once write at the same place.
            fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
            os.write(fd, token)
        finally:
            let_go(fd, path_of(log.place))


def _look(phase: str, _: Any) -> None:
    """After a collection, in whichever thread it ran; so it takes no turn, and waits for none."""
    global _log
    if phase != "stop" or _log is None or not _log.close.alive or not _guard.acquire(blocking=False):
        return
    try:
        _settle(_log)
        if not _sent and not _seen:
            _log.close()
            _log = None
            gc.callbacks.remove(_look)
    finally:
        _guard.release()


def _settle(log: _Log) -> None:
    for token in log.new_lines():
        if token in _sent:
            _sent[token].count -= 1
    now = monotonic()
    for token in [token for token, sent in _sent.items() if sent.count <= 0 or sent.deadline < now]:
        del _sent[token]


def forget() -> None:
    """In a fork: what the parent has sent is the parent's."""
    global _log, _guard
    _guard = threading.Lock()
    _sent.clear()
    _seen.clear()
    if _log is not None:
        _log.close.detach()
        os.close(_log.fd)
        _log = None
        gc.callbacks.remove(_look)


_log: _Log | None = None
_sent: dict[bytes, _Sent] = {}
_seen: weakref.WeakSet[Any] = weakref.WeakSet()  # for as long as one of these lives, the log stays where it is
_guard = threading.Lock()
