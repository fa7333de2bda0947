"""Calls that take too long: told to stop, and when they do not, ended."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from holdfast._core.events import Worker
from holdfast._engine.berth import Berth
from holdfast._engine.roster import Roster
from holdfast._system import stacks
from holdfast._system.interrupting import CAN_INTERRUPT, INTERRUPT
from holdfast._transport.logbook import OVERDUE, Phase

from .calls import Task

GRACE = 1.0  # seconds that Python code has to stop by itself, and to clean up


class Stuck(NamedTuple):
    """A worker that has to be ended, because of this item of its task. Its stack, as text."""

    who: Worker
    berth: Berth
    task: Task
    item: int
    stack: str


class Timeouts:
    """Owned by the works. Looks at logbooks, when a limit may have been reached and not before."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._told: dict[Worker, tuple[int, int, float]] = {}  # the task and the item that it is to stop, since when
        self.next_look = math.inf

    def watch(self, task: Task) -> None:
        """It was handed to a worker."""
        if task.call.timeout is not None:
            self.next_look = min(self.next_look, time.monotonic() + task.call.timeout)

    def look(self, tasks: Mapping[int, Task]) -> Iterator[Stuck]:
        now = time.monotonic()
        limits = [task.call.timeout for task in tasks.values() if task.call.timeout is not None]
        self.next_look = now + min(limits, default=math.inf)
        for who, berth in self._roster.items():
            entry = berth.logbook.read()
            task = tasks.get(entry.batch)
            if task is None or task.call.timeout is None or entry.phase is not Phase.RUNNING or entry.sample < 0:
                continue
            due = self._due(who, (entry.batch, entry.sample), entry.since + task.call.timeout)
            if now < due:
                self.next_look = min(self.next_look, due)
            elif CAN_INTERRUPT and who not in self._told:
                self._interrupt(who, berth, entry.batch, entry.sample, now)
            else:
                self._told.pop(who, None)
                yield Stuck(who, berth, task, entry.sample, _stack(berth))

    def _due(self, who: Worker, what: tuple[int, int], due: float) -> float:
        """When it has to have ended, which is later when it was told to stop."""
        told = self._told.get(who)
        if told is None:
            return due
        if told[:2] == what:
            return told[2] + GRACE
        del self._told[who]
        return due

    def _interrupt(self, who: Worker, berth: Berth, task: int, item: int, now: float) -> None:
        self._told[who] = task, item, now
        berth.logbook.numbers[OVERDUE], berth.logbook.numbers[OVERDUE + 1] = task, item
        berth.process.send_signal(INTERRUPT)
        self.next_look = min(self.next_look, now + GRACE)


def _stack(berth: Berth) -> str:
    try:
        return "\n".join(stacks.ask(berth.process.pid)[0].lines)
    except (stacks.Unseen, IndexError):
        return ""
