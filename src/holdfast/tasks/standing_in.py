"""What a stand-in shows a crew in place of a worker's process, its line and its logbook."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from holdfast._engine.lines import ThreadLine
from holdfast._engine.threads import _close, _pipe
from holdfast._system.process import Process
from holdfast._transport.logbook import Entry, Logbook
from holdfast._transport.messages import Message
from holdfast.errors import Verdict

from .loading import Loading


class StandInProcess(Process):
    """The process of the pool that was last heard or looked at. Owns a pipe, which tells that it has left."""

    def __init__(self, pid: int) -> None:
        self._reader, self._writer = _pipe()
        super().__init__(pid, self._reader.fileno())
        self._verdict = Verdict(0)
        self.loading: Loading | None = None

    def is_now(self, pid: int) -> None:
        if not self._ended:
            self._pid = pid

    def leave(self, verdict: Verdict, loading: Loading | None) -> None:
        """For this reason, as the pool has found out."""
        self._verdict, self.ended_by_us = verdict, verdict.ended_by_us
        if loading is not None and loading.berth is not None:
            self._pid, self.remains = loading.pid, loading.berth.process.remains
        self._writer.send_bytes(b"")  # not closed: whoever hears it may do that at the same time

    def last_words(self) -> str:
        return self._verdict.stderr

    def kill(self) -> None:
        """The one of the pool, if it is at work for us now."""
        if self.loading is not None and self.loading.berth is not None and self.loading.runs:
            self.loading.berth.process.kill()

    def send_signal(self, number: int) -> None:
        if self.loading is not None and self.loading.berth is not None and self.loading.runs:
            self.loading.berth.process.send_signal(number)

    def _collect(self) -> int | None:
        return self._verdict.status

    def _release(self) -> None:
        _close(self._reader)
        _close(self._writer)


class StandInLine(ThreadLine):
    """Heard one message at a time, together with the process that it is from."""

    def __init__(self) -> None:
        super().__init__()
        self._speakers: deque[int] = deque()
        self.speaker = 0  # pid

    def say_for(self, pid: int, message: Message) -> None:
        self._speakers.append(pid)
        self.say(message)

    def hear(self) -> list[Message]:
        if not self._outbox:
            return []
        self.speaker = self._speakers.popleft()
        return [self._outbox.popleft()]


class StandInLogbook(Logbook):
    """What the process of the pool notes for us, live; when it has left, the last of it."""

    __slots__ = ("_look", "_stack")

    def __init__(self, look: Callable[[], Entry]) -> None:
        self._look, self._stack = look, ""

    def keep(self, entry: Entry, stack: str) -> None:
        self._look, self._stack = lambda: entry, stack

    def read(self) -> Entry:
        return self._look()

    @property
    def memory(self) -> int:
        return 0  # which is the pool's affair

    def crash_stack(self) -> str:
        return self._stack
