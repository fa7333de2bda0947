"""What was written before is seen by others before anything is read after."""

from __future__ import annotations

import threading

_lock = threading.local()


def fence() -> None:
    """To take a lock and give it back are two atomic operations, which no processor moves a write or a read across."""
    try:
        lock = _lock.own
    except AttributeError:
        lock = _lock.own = threading.Lock()
    lock.acquire()
    lock.release()
