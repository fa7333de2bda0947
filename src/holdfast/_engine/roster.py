"""Who is there: the berths of a crew, and the one wait on all of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from holdfast._core.events import Worker
from holdfast._system.process import Process
from holdfast._system.waiting import WRITE, Waiter
from holdfast._transport.messages import Close, Message

from .berth import Berth
from .lines import Exchange, ThreadLine

GLANCE, LONGEST_GLANCE = 0.001, 0.008  # seconds after which one looks whether a thread has not rung, first and at most
GRACE = 0.15  # seconds that a worker has to finish by itself when the crew is closed
REAP = 5.0  # seconds to wait for the kernel to end a process that was killed


@dataclass(slots=True)
class Exited:
    """The process is gone; everything it said before has been heard."""

    berth: Berth


class Roster:
    """Owns the berths and what they hold."""

    def __init__(self) -> None:
        self.waiter = Waiter()  # whoever waits for more than us adds that here
        self._berths: dict[Worker, Berth] = {}
        self._by_fd: dict[int, Worker] = {}
        self._unflushed: set[Worker] = set()
        self._exchange = Exchange()  # of their lines, if they are threads; a crew is of one kind
        self._gone: list[Berth] = []  # let go of, and not yet known to have ended
        self.processes: list[Process] = []  # by seat: the latest life of each

    def __getitem__(self, who: Worker) -> Berth:
        return self._berths[who]

    def __contains__(self, who: object) -> bool:
        return who in self._berths

    def add(self, who: Worker, berth: Berth) -> None:
        self._berths[who] = berth
        self.processes[who.seat : who.seat + 1] = [berth.process]
        stderr = [berth.process.stderr.fileno()] if berth.process.stderr is not None else []
        fds = berth.channel.fileno(), berth.process.sentinel, *stderr
        self._by_fd |= dict.fromkeys(fds, who)
        if isinstance(berth.channel, ThreadLine):
            self._exchange.add(who, berth.channel)
        else:
            for fd in fds:
                self.waiter.watch(fd)

    def items(self) -> list[tuple[Worker, Berth]]:
        return list(self._berths.items())

    def memory_of(self, who: Worker) -> int:
        """Bytes, by its own account; 0 when it is gone."""
        berth = self._berths.get(who)
        return 0 if berth is None else berth.logbook.memory

    def retire(self, who: Worker) -> None:
        """It has nothing to do any more: its end, when it comes, is no news."""
        self._berths[who].tell(Close())

    def let_go(self, who: Worker) -> None:
        """End it without waiting: a process in an uninterruptible sleep dies when it wakes, if ever."""
        berth = self._berths.pop(who)
        self._exchange.remove(who)
        for fd in [fd for fd, owner in self._by_fd.items() if owner == who]:
            self._forget(fd)
        berth.tell(Close())  # a thread cannot be killed, and would wait for its next message
        berth.process.kill()
        self._gone.append(berth)

    def tell(self, who: Worker, message: Message) -> None:
        berth = self._berths[who]
        berth.tell(message)
        self._watch_backlog(who, berth)

    def put(self, who: Worker, message: Message) -> None:
        """As ``tell``, but it goes off with the next ``flush``: several in one piece."""
        self._berths[who].put(message)
        self._unflushed.add(who)

    def flush(self) -> None:
        while self._unflushed:
            who = self._unflushed.pop()
            berth = self._berths.get(who)
            if berth is not None and not berth.channel.flush():
                self._watch_backlog(who, berth)

    def _watch_backlog(self, who: Worker, berth: Berth) -> None:
        backlog = berth.channel.backlog()
        if backlog >= 0:
            self._by_fd[backlog] = who
            self.waiter.watch(backlog, WRITE)

    def asked(self) -> None:
        """The trainer has come for a batch."""
        if self._exchange.lines:
            self._exchange.asked()

    def handed_over(self) -> None:
        """It has one, and goes away."""
        if self._exchange.lines:
            self._exchange.handed_over()

    def wait(self, seconds: float) -> list[int]:
        """Until something happened, or the time is up ([]). An interrupt here leaves everything as it was."""
        if not self._exchange.lines:
            return self.waiter.wait(seconds)
        return self._heard_of() or self._wait_for_threads(time.monotonic() + seconds)

    def _wait_for_threads(self, until: float) -> list[int]:
        exchange, glance = self._exchange, GLANCE
        exchange.call_all()
        while True:
            exchange.bell.expect()
            if (ready := self._heard_of()) or (left := until - time.monotonic()) <= 0:
                return ready
            if exchange.are_brisk():
                left, glance = min(left, glance), min(2 * glance, LONGEST_GLANCE)
            exchange.bell.wait(left)

    def _heard_of(self) -> list[int]:
        """Of threads: the lines of those who have something to say, or else the sentinels of those who have ended."""
        lines = self._exchange.lines
        spoken = [line.fileno() for line in lines.values() if line.has_spoken()]
        return spoken or [self._berths[who].process.sentinel for who, line in lines.items() if line.is_over]

    def hear(self, fd: int) -> Iterable[tuple[Worker, Message | Exited]]:
        """What happened on this descriptor."""
        who = self._by_fd.get(fd)
        if who is None:
            return ()  # of a life that ended a moment ago
        berth = self._berths[who]
        if fd == berth.channel.fileno():  # before all else: it speaks for every batch
            return [(who, message) for message in self._read(berth)]
        return self._hear_else(fd, who, berth)

    def _hear_else(self, fd: int, who: Worker, berth: Berth) -> Iterator[tuple[Worker, Message | Exited]]:
        if fd == berth.process.sentinel:
            if not berth.process.heard():
                return
            while messages := self._read(berth):
                yield from ((who, message) for message in messages)
            self._remove(who, berth)
            yield who, Exited(berth)
        elif (stderr := berth.process.stderr) is not None and fd == stderr.fileno():
            if not stderr.forward():
                self._forget(fd)
        else:
            if berth.channel.flush():
                self._forget(fd)

    def close(self) -> None:
        """End everybody: a word, a moment, then SIGKILL. Nothing is left when this returns."""
        berths = list(self._berths.values())
        for berth in berths:
            berth.tell(Close())
        self._join(berths, GRACE)
        for berth in berths:
            if berth.process.is_alive():
                berth.process.kill()
        self._join(berths, REAP)
        self._join(self._gone, GRACE)
        for berth in (*berths, *self._gone):
            berth.close()
        self._gone.clear()
        self._berths.clear()
        self._exchange.clear()
        self._by_fd.clear()

    def abandon(self) -> None:
        """In a fork of the owner: let go without ending anybody."""
        for berth in self._berths.values():
            berth.process.close()  # its sentinel may be a socket, which complains when it is not closed
        self._berths.clear()
        self._exchange.clear()
        self._by_fd.clear()

    def _join(self, berths: list[Berth], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for berth in berths:
            berth.process.join(max(0.0, deadline - time.monotonic()))

    def _read(self, berth: Berth) -> list[Message]:
        try:
            return berth.hear()
        except EOFError:
            # It closed its end, so it is about to go; the sentinel will tell. Until then there is nothing to read.
            self._forget(berth.channel.fileno())
            return []

    def _remove(self, who: Worker, berth: Berth) -> None:
        for fd in [fd for fd, owner in self._by_fd.items() if owner == who]:
            self._forget(fd)
        del self._berths[who]
        self._exchange.remove(who)
        berth.close()

    def _forget(self, fd: int) -> None:
        self._by_fd.pop(fd, None)
        self.waiter.forget(fd)
