"""How the trainer's own threads speak with it: messages as objects, and a bell for whoever waits for them.

The bell is a lock and no pipe: to write to a pipe a thread gives up the interpreter, which with every batch would be
passed to and fro.

To wake somebody costs more than a small batch does. So where batches are *brisk*, and the trainer does nothing else
between two of them, a thread that has more to do does not ring for each, and the trainer wakes nobody for each that it
asks for: both do so before they wait. See docs/design/13-speed.md.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import deque

from holdfast._core.events import Worker
from holdfast._transport.messages import Load, Message

AT_ONCE = 0.0001  # seconds: a trainer that comes back so soon does nothing else
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


class Exchange:
    """All lines of a roster, and the bell that is rung for the one who waits on them."""

    def __init__(self) -> None:
        self.bell = Bell()
        self.hurried = False  # the trainer came back for the next batch at once
        self._handed_over_at = 0.0
        self.lines: dict[Worker, ThreadLine] = {}  # never changed, only replaced: threads may be looking at it

    def add(self, who: Worker, line: ThreadLine) -> None:
        self.lines = {**self.lines, who: line}
        line.exchange = self

    def remove(self, who: Worker) -> None:
        self.lines = {other: line for other, line in self.lines.items() if other != who}

    def clear(self) -> None:
        self.lines = {}

    def asked(self) -> None:
        self.hurried = time.monotonic() - self._handed_over_at < AT_ONCE

    def handed_over(self) -> None:
        self._handed_over_at = time.monotonic()

    def call_all(self) -> None:
        """Those who sleep and have something to do."""
        for line in self.lines.values():
            line.call()

    def are_brisk(self) -> bool:
        return any(line.brisk for line in self.lines.values())

    def is_more_to_come(self) -> bool:
        """Without anything that the trainer would have to do."""
        return any(line.has_more() for line in self.lines.values())


class ThreadLine:
    """Both ends of the conversation with a thread. No lock: each end of each queue has one user."""

    def __init__(self) -> None:
        self._inbox: deque[Message] = deque()
        self._outbox: deque[Message] = deque()
        self._called = Bell()  # for the thread, if it waits
        self._number = next(_numbers)
        self._closed = False
        self.is_over = False  # the thread has ended
        self.brisk = False  # its last batch was
        self.exchange = Exchange()

    # The thread's end

    def next_message(self) -> Message:
        while not self._inbox:
            self._called.expect()
            if not self._inbox:
                self._called.wait(math.inf)
        return self._inbox.popleft()

    def has_more(self) -> bool:
        return bool(self._inbox)

    def say(self, message: Message) -> None:
        if not self._closed:
            self._outbox.append(message)
            if not (self.brisk and self.exchange.hurried and self.exchange.is_more_to_come()):
                self.exchange.bell.ring()

    def hang_up(self) -> None:
        """The last thing that a thread does."""
        self.is_over = True
        self.exchange.bell.ring()

    # The trainer's end

    def tell(self, message: Message) -> None:
        self._inbox.append(message)
        if type(message) is not Load:
            self.exchange.hurried = False  # an epoch begins, say, and who knows when its first batch is wanted
        if not (self.brisk and self.exchange.hurried):
            self._called.ring()

    def call(self) -> None:
        """Wake the thread, if there is something for it to do."""
        if self._inbox:
            self._called.ring()

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
