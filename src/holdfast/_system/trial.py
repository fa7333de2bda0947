"""Something that is tried out in a fork, so that nothing here is changed by it and nobody waits for it for ever."""

from __future__ import annotations

import faulthandler
import gc
import os
import pickle
import struct
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from .waiting import Waiter

Tell = Callable[[Any], None]
_PATIENCE = 0.5  # seconds
_LENGTH = struct.Struct("<q")


class Trial(NamedTuple):
    told: list[Any]
    ended: bool  # False: it had to be killed, or died


def tried(work: Callable[[Tell], None], limit: float) -> Trial:
    """Runs ``work`` in a fork; what it tells until its end, or for ``limit`` seconds. It says nothing on a terminal."""
    from .fork import forked_child  # late: not on Windows

    reader, writer = os.pipe()
    silence = os.open(os.devnull, os.O_RDWR)
    try:
        with warnings.catch_warnings():
            # Python warns of a fork beside threads. Should it hang for one of their locks, it is killed.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = forked_child(lambda: _work(work, writer), silence)
    finally:
        os.close(silence)
        os.close(writer)
    try:
        messages = _read(reader, time.monotonic() + limit)
    finally:
        os.close(reader)
        process.kill()
        process.join(_PATIENCE)  # one that waits for a dead disk cannot be killed, and is not waited for
        process.close()
    values = [pickle.loads(message) for message in messages]
    ended = bool(values) and values[-1] is _END
    return Trial(values[:-1] if ended else values, ended)


class _End:
    def __reduce__(self) -> str:
        return "_END"  # the one that is there, by its name


_END = _End()


def _work(work: Callable[[Tell], None], fd: int) -> None:
    faulthandler.disable()  # it may write to another descriptor
    gc.disable()  # no finalizer of the user's, and no copies of pages for it
    os.dup2(2, 1)  # which leads nowhere
    sys.stdout = sys.stderr  # also where these were something else, as in a notebook

    def tell(value: Any) -> None:
        message = pickle.dumps(value)
        message = _LENGTH.pack(len(message)) + message
        while message:
            message = message[os.write(fd, message) :]

    work(tell)
    tell(_END)


def _read(fd: int, deadline: float) -> list[bytes]:
    """Whole messages, until the other end is closed or time is up."""
    waiter, received = Waiter(), b""
    waiter.watch(fd)
    while waiter.wait(max(0.0, deadline - time.monotonic())):
        more = os.read(fd, 1 << 16)
        if not more:
            break
        received += more
    found = []
    while len(received) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(received)
        end = _LENGTH.size + length
        if len(received) < end:
            break
        found.append(received[_LENGTH.size : end])
        received = received[end:]
    return found
