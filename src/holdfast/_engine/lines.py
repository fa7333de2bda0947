"""How the trainer's own threads speak with it: messages as objects, and a bell for whoever waits for them.

The bell is a lock and no pipe: to write to a pipe a thread gives up the interpreter, which with every batch would be
passed to and fro.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import deque
from queue import SimpleQueue

from holdfast._transport.messages import Message

_numbers = itertools.count(-2, -1)  # of lines; what is less than 0 is no descriptor


class Bell:
    """One for all lines of a roster: any thread may ring it, one waits. Who rings for nobody does nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._awaited = False

    def ring(self) -> None:
        if self._awaited:
            self._awaited = False
            try:
                self._lock.release()
            except RuntimeError:
                pass  # somebody else has rung at the same moment

    def expect(self) -> None:
        """From now on it is rung. Who has spoken before has not, so look once more before you wait."""
        self._lock.acquire(blocking=False)  # an old ring is for nobody
        self._awaited = True

    def wait(self, seconds: float) -> bool:
        """Whether it was rung before the time was up; now and then by who was late to ring for something earlier."""
        return self._lock.acquire(timeout=-1 if seconds == math.inf else min(max(0.0, seconds), threading.TIMEOUT_MAX))


class ThreadLine:
    """Both ends of the conversation with a thread. No lock: each end of each queue has one user."""

    def __init__(self) -> None:
        self._inbox: SimpleQueue[Message] = SimpleQueue()
        self._outbox: deque[Message] = deque()
        self._number = next(_numbers)
        self._closed = False
        self.is_over = False  # the thread has ended
        self.bell = Bell()

    # The thread's end

    def next_message(self) -> Message:
        return self._inbox.get()

    def say(self, message: Message) -> None:
        if not self._closed:
            self._outbox.append(message)
            self.bell.ring()

    def hang_up(self) -> None:
        """The last thing that a thread does."""
        self.is_over = True
        self.bell.ring()

    # The trainer's end

    def tell(self, message: Message) -> None:
        self._inbox.put(message)

    def has_spoken(self) -> bool:
        return bool(self._outbox)

    def hear(self) -> list[Message]:
        return [self._outbox.popleft() for _ in range(len(self._outbox))]

    # As a channel, for those who wait on it

    def fileno(self) -> int:
        """No descriptor, but as good for telling one line from another."""
        return self._number

    def send(self, message: bytes) -> None:
        raise AssertionError("a thread is told objects")

    put = send

    def receive(self) -> list[bytes]:
        raise AssertionError("a thread says objects")

    def backlog(self) -> int:
        return -1

    def flush(self) -> bool:
        return True

    def close(self) -> None:
        self._closed = True
        self._outbox.clear()
