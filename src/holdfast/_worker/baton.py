"""Threads that cannot run at once take turns by batches.

Two threads in Python code hold each other up: whenever one calls into C code that gives up the interpreter, the other
takes it, and the first has to wait until it gets it back. Loading one batch after the other does the same work
without that. It has to be found out whether they can run at once, and found out anew, for it depends on the samples, on
the trainer, and on how many processors are left. See docs/design/13-speed.md.
"""

from __future__ import annotations

import threading
import time

PATIENCE = 0.1  # seconds; who keeps it for longer may be hanging, and must not stop the others
SPAN = 0.005  # seconds after which it is passed on though there is more to load: the interpreter's own
WINDOW = 16  # batches by which it is judged
ALONE = 0.7, 1.25  # processors that all threads use together if only one of them can run at a time
FIRST, LONGEST = 64, 1024  # batches until it is found out anew


class Habit:
    """Decides whether threads take turns, by how long their batches take together, and how much of a processor.

    Not by what one batch takes: where the interpreter itself changes threads only every few batches, each of them looks
    as if it had been alone, whether or not another one waited for it.
    """

    def __init__(self) -> None:
        self._seen: list[tuple[float, float, float]] = []  # some batches: from when, until when, seconds of a processor
        self._without = 0.0  # seconds for as many when they did not take turns
        self._won = False  # turns were as good, the first time in this look
        self._settled = False  # on taking turns, by the last look
        self._left, self._pause = 0, FIRST  # batches until the next look, and how many those were
        self.in_turns = False

    def see(self, began: float, ended: float, cpu: float, in_turns: bool) -> None:
        """One batch: from when until when, how much of a processor it took, and whether its thread had its turn."""
        if in_turns is not self.in_turns:
            return  # it was begun before the last decision
        if not self._left:
            self._seen.append((began, ended, cpu))
            if len(self._seen) == WINDOW:
                self._judge(*zip(*self._seen))
        elif self._left > 1:
            self._left -= 1
        else:
            self._try(in_turns=False)  # could they run at once by now?

    def give_up(self) -> None:
        """Somebody kept the others waiting for too long."""
        if self.in_turns:
            self._settle(in_turns=False)

    def _judge(self, began: tuple[float, ...], ended: tuple[float, ...], cpu: tuple[float, ...]) -> None:
        seconds = max(ended) - min(began)
        if not self.in_turns and not ALONE[0] * seconds <= sum(cpu) <= ALONE[1] * seconds:
            self._settle(in_turns=False)
        elif not self.in_turns:
            self._without = seconds
            self._try(in_turns=True)
        elif self._won or seconds > self._without:
            self._settle(in_turns=seconds <= self._without)
        else:
            self._won = True  # once may be luck: somewhere there was a slow sample
            self._try(in_turns=False)

    def _try(self, *, in_turns: bool) -> None:
        self.in_turns = in_turns
        self._left = 0
        self._seen.clear()

    def _settle(self, *, in_turns: bool) -> None:
        """So it stays for a while; for a longer one each time that the look was in vain."""
        self._pause = min(2 * self._pause, LONGEST) if in_turns is self._settled else FIRST
        self._try(in_turns=in_turns)
        self._settled, self._won, self._left = in_turns, False, self._pause


class Baton:
    """One for all threads of a crew: who has it loads batches, if they take turns."""

    def __init__(self) -> None:
        self.lock, self.habit = threading.Lock(), Habit()
        self.deciding = threading.Lock()


class Hand:
    """One thread's hold on the baton. It keeps it for as long as it has batches to load, but not for ever: to pass it
    on costs more than a small batch does."""

    def __init__(self, baton: Baton) -> None:
        self._baton, self._lock, self._habit = baton, baton.lock, baton.habit
        self.holds, self._since = False, 0.0
        self._cpu = self._began = 0.0

    def begin(self) -> None:
        """A batch: wait for my turn, if need be."""
        if self.holds and not self._habit.in_turns:
            self.pass_on()
        elif self._habit.in_turns and not self.holds:
            self.holds, self._since = self._lock.acquire(timeout=PATIENCE), time.perf_counter()
            if not self.holds:
                with self._baton.deciding:
                    self._habit.give_up()
        self._cpu, self._began = time.thread_time(), time.perf_counter()

    def end(self, *, more: bool) -> float:
        """How long the batch took. ``more``: there is another one to be loaded."""
        cpu, now, held = time.thread_time() - self._cpu, time.perf_counter(), self.holds
        if not more or now - self._since > SPAN:
            self.pass_on()
        with self._baton.deciding:
            self._habit.see(self._began, now, cpu, held)
        return now - self._began

    def pass_on(self) -> None:
        """Calling it twice is harmless."""
        if self.holds:
            self.holds = False
            self._lock.release()


def baton(threads: int) -> Baton | None:
    """None where there is nobody to take turns with, or no clock that tells how much of a processor a batch had."""
    exact = time.get_clock_info("thread_time").resolution <= 1e-5
    return Baton() if threads > 1 and exact else None
