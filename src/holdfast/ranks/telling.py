"""What a rank says about itself: a note in its logbook, a word through its pipe, and the rest in shared memory.

The word is a few bytes and the rest needs no reader, so a rank never waits for a parent that is busy elsewhere.
"""

from __future__ import annotations

import enum
import os
import pickle
import sys
import time
from typing import Any, NamedTuple

import cloudpickle

from holdfast._system.segments import MemfdSegment
from holdfast._transport.channel import Channel
from holdfast._transport.faults import pack_error
from holdfast._transport.logbook import Logbook, Phase

RUNNING = Phase.INITIALISING
FAILING = Phase.SENDING  # noted when it fails, before anything is packed: since when tells who was first
LEAVING = Phase.IDLE


class Ending(enum.Enum):
    RETURNED = enum.auto()
    RAISED = enum.auto()
    EXITED = enum.auto()  # by sys.exit


class Told(NamedTuple):
    """How a rank's function ended. ``size``: bytes of the result or of the exception, in the outcome."""

    ending: Ending
    at: float  # by the monotonic clock, which all processes share
    size: int


class Telling:
    """The rank's side. Owns its ends of the channel and of the outcome."""

    def __init__(self, channel: Channel, outcome: MemfdSegment, logbook: Logbook) -> None:
        self._channel, self._outcome, self._logbook = channel, outcome, logbook

    def unpacking(self) -> None:
        self._logbook.note(Phase.UNPACKING)

    def began(self) -> None:
        self._logbook.note(RUNNING)

    def returned(self, value: Any) -> None:
        """A result that cannot be pickled is the reason for that instead: the rank has done its work all the same."""
        self._say(Ending.RETURNED, _packed(value))
        self._logbook.note(LEAVING)

    def raised(self, error: BaseException) -> None:
        self._logbook.note(FAILING)
        self._say(Ending.RAISED, pack_error(error))

    def exited(self, end: SystemExit) -> int:
        """The status, as the interpreter would exit."""
        self._logbook.note(FAILING)
        self._logbook.tell_end(end)
        self._say(Ending.EXITED, b"")
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)
        return 1

    def _say(self, ending: Ending, packed: bytes) -> None:
        at = time.monotonic() if ending is Ending.RETURNED else self._logbook.read().since
        if packed:
            self._outcome.extend(len(packed))
            self._outcome.write(memoryview(packed), 0)
        self._channel.send(pickle.dumps(Told(ending, at, len(packed))))


def _packed(value: Any) -> bytes:
    for dumps in (pickle.dumps, cloudpickle.dumps):  # by name, if possible: the parent has its own classes
        try:
            return bytes(dumps((value, ""), protocol=5))
        except Exception as error:
            reason = f"{type(value).__name__}: {error}"
    return pickle.dumps((None, reason))


def read_outcome(outcome: MemfdSegment, size: int) -> bytes:
    """In the parent."""
    parts, done = [], 0
    while done < size:
        parts.append(os.pread(outcome.fd, size - done, done))
        done += len(parts[-1])
    return b"".join(parts)
