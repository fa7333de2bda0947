"""A pool at work: carries out what its machine decides, and tells it what happens.

There is no thread in here: whoever waits for a result keeps things going (`turns`). All that happens is taken in under
one lock; results are handed out without it.
"""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from typing_extensions import assert_never

from holdfast._core.events import Ticked, Worker, WorkerReady
from holdfast._core.task_events import (
    AllDone,
    Dismiss,
    Drained,
    Forget,
    GiveUp,
    Hand,
    Launch,
    LifeEnded,
    Opened,
    Recall,
    Recalled,
    Submitted,
    TaskCommand,
    TaskEnded,
    TaskEvent,
    TaskFailed,
    Withdrawn,
)
from holdfast._core.tasks import TaskLimits, TaskMachine
from holdfast._engine import leaving
from holdfast._engine.autopsy import examine
from holdfast._engine.berth import Berth
from holdfast._engine.docket import Whose
from holdfast._engine.launchers import Launcher
from holdfast._engine.prompts import Prompts
from holdfast._engine.roster import Exited, Roster
from holdfast._system.memory_events import OomWatch
from holdfast._system.process import Process
from holdfast._system.waiting import MOMENT
from holdfast._transport import messages
from holdfast._transport.logbook import Entry, Phase
from holdfast._transport.messages import Did, Message
from holdfast.errors import PoolBroken, Verdict

from .accounts import Accounts
from .calls import Call, Task
from .deliveries import Delivery
from .dispatch import Dispatch
from .endings import initializer_failed, never_ready, terminated
from .guard import Guard
from .judge import Ruling, TaskJudge
from .kits import Kit
from .opening import Opening
from .outlet import Outlet
from .rulings import Rulings
from .timeouts import Timeouts


class Works:
    """Owns the launcher, the roster and the outlet. Used by any number of threads of the process that made it."""

    def __init__(self, limits: TaskLimits, launcher: Launcher, outlet: Outlet, judge: TaskJudge) -> None:
        self._machine, self._launcher, self._outlet, self._judge = TaskMachine(limits), launcher, outlet, judge
        self.opening = Opening(launcher, lambda: self._feed(Opened()))
        self._roster, self._oom = Roster(), OomWatch()
        self._dispatch = Dispatch(self._roster, outlet, private=judge.may_retry)
        self._timeouts, self._accounts = Timeouts(self._roster), Accounts(self._dispatch)
        self._tasks, self._deliveries = self._accounts.tasks, self._accounts.deliveries
        self.waiter = self._roster.waiter  # for one thread at a time
        self.hand_out = self._deliveries.hand_out  # results, to those who asked; not under the lock: their code runs
        self._rulings = Rulings(judge, self._accounts)
        self._events: deque[TaskEvent] = deque()
        self._deadline = math.inf  # the machine's; for those, too, who do not hold the lock
        self._feeding = False
        self._last: Verdict | None = None
        self._withdrawal: BaseException | None = None
        self.kits, self.lock, self.owner = self._dispatch.kits, Guard(lambda: self._break(terminated())), os.getpid()
        self.failure: PoolBroken | None = None
        self.closed = self.draining = False
        self.is_prompt = False  # the latest task took no time to speak of
        self._streams = 0  # that have more to submit
        self.prompts = Prompts(self._roster, self._doing, lock=self.lock)
        leaving.close_at_exit(self)

    @property
    def processes(self) -> list[Process]:
        with self.lock:
            self.opening.now()
        return self._roster.processes

    @property
    def background(self) -> int:
        """Calls that are not done, and that nobody may be waiting for."""
        return self._accounts.background

    # -- what is asked of it -------------------------------------------------------------------

    def open(self, *, at_once: bool) -> None:
        """Start all workers, without waiting for them; if not at once, when the first call shows what they need."""
        with self.lock:
            self.opening.want(at_once)

    def submit(self, call: Call, chunk: int) -> None:
        """Have it done, in pieces of so many items. Under the lock, as nobody may let go of its kit meanwhile."""
        self.opening.call(call)
        self._accounts.open(call)
        numbers = self._accounts.cut(call, chunk)
        if self.closed:
            self._accounts.fail_all(self.failure or terminated())
            return
        for number in numbers:
            self._feed(Submitted(number, call.kit.number))
        self._roster.flush()

    def withdraw(self, call: Call, error: BaseException | None = None) -> None:
        """What of it has not been sent is not wanted any more, and has this error for a result, or none."""
        with self.lock:
            for number in call.tasks:
                if number in self._tasks:
                    self._withdrawal = error
                    self._feed(Withdrawn(number))

    def release(self, kit: Kit) -> None:
        """Whoever had it kept makes no more calls."""
        with self.lock:
            self._dispatch.release(kit)
            self._roster.flush()

    def drain(self) -> None:
        """No more calls will come, but those of streams that are open: workers may go when all is done."""
        with self.lock:
            self.draining = True
            self._end_if_all_said()

    def stream(self, opened: bool) -> None:
        """One that submits its calls bit by bit was opened, or has submitted them all."""
        with self.lock:
            self._streams += 1 if opened else -1
            self._end_if_all_said()

    def _end_if_all_said(self) -> None:
        if self.draining and not self._streams and not self.closed:
            self._feed(Drained())

    def close(self) -> None:
        """End all workers, now; what is not done has an error for a result. Harmless when done before, or in a fork."""
        if os.getpid() != self.owner:
            if not self.closed:
                self.closed = True
                self._roster.abandon()
            return
        with self.lock:
            if not self.closed:
                self._break(terminated())
        self.hand_out()

    def next_deadline(self) -> float:
        return min(self._deadline, self._timeouts.next_look)

    def take_in(self, ready: list[int]) -> None:
        """What happened on these descriptors, and what time it is by now."""
        with self.lock:
            if self.closed:
                return
            for fd in ready:
                for who, message in self._roster.hear(fd):
                    if not self.closed:
                        self._on_message(who, message)
            if time.monotonic() >= self._deadline:
                self._feed(Ticked())
            if time.monotonic() >= self._timeouts.next_look:
                self._look()
            self._roster.flush()

    # -- what happens --------------------------------------------------------------------------

    def _on_message(self, who: Worker, message: Message | Exited) -> None:
        match message:
            case Did():
                self._on_results(who, message)
            case messages.PassedOver():
                self._outlet.returned(who, message.freed)
                if self._dispatch.recalls.passed_over(who, message.task, message.turn):
                    self._feed(Recalled(who, (message.task,)))
            case messages.Extended():
                self._roster[who].arena.extended(message.base, message.size)
            case messages.Ready():
                self._feed(WorkerReady(who))
            case messages.InitFailed():
                self._break(initializer_failed(message.error))
            case Exited():
                self._on_exit(who, message.berth)
            case _:
                self.prompts.hear(who, message)

    def calls(self) -> set[Call]:
        """Those that are not done."""
        with self.lock:
            return {task.call for task in self._tasks.values()}

    def _on_results(self, who: Worker, message: Did) -> None:
        if message.freed:
            self._outlet.returned(who, message.freed)
        task = self._tasks.get(message.task)
        if task is None or not self._machine.is_held_by(who, message.task):
            return  # it was let go of
        items = messages.in_full(message.items)
        arena = self._roster[who].arena
        if message.errors:
            again, pause = self._rulings.deliver(task, items, message, arena, self._whose(who))
        else:
            again, pause = [], 0.0
            self._deliveries.add(Delivery(task.call, items, message.packed, arena))
        self._accounts.settled(task.call, len(items) - len(again))
        task.take_out(items, again)
        if not message.over:
            return
        self._dispatch.recalls.ended(who, task.number)
        if task.todo:
            self._feed(TaskFailed(who, task.number, time.monotonic() + pause))
        else:
            task.call.kit.seconds = message.seconds / (task.stop - task.first)
            self.is_prompt = message.seconds < MOMENT
            self._accounts.forget(task)
            self._feed(TaskEnded(who, task.number, message.seconds))

    def _on_exit(self, who: Worker, berth: Berth) -> None:
        self._dispatch.gone(who)
        verdict = self._last = examine(berth, self._oom)
        entry, whose = berth.logbook.read(), Whose(who.seat, who.life, berth.process.pid)
        task = self._tasks.get(entry.batch) if entry.phase in (Phase.RUNNING, Phase.RETURNING) else None
        if task is not None and self._machine.is_held_by(who, task.number):
            call = task.call
            self._end(who, task, entry.sample, partial(self._judge.ended, call, verdict=verdict, whose=whose))
            return
        if not self._machine.is_leaving(who):
            self._judge.restarted(verdict, whose)
        self._feed(LifeEnded(who))

    def _look(self) -> None:
        for stuck in self._timeouts.look(self._tasks):
            call, whose = stuck.task.call, self._whose(stuck.who)
            self._roster.let_go(stuck.who)
            self._dispatch.gone(stuck.who)
            rule = partial(self._judge.stuck, call, stack=stuck.stack, whose=whose)
            self._end(stuck.who, stuck.task, stuck.item, rule)

    def _end(self, who: Worker, task: Task, item: int, rule: Callable[[int], Ruling]) -> None:
        """The life is over in which this task was running: which of its items was it, and what becomes of the rest?"""
        if item < 0 and len(task.todo) == 1:
            item = task.todo[0]
        if item in task.todo:
            self._rulings.settle(task, item, rule(item))
        elif item < 0 and task.alone:  # it is in how they are unpacked: each in a parcel of its own
            self._feed(LifeEnded(who, task.number))
            self._split(task)
            return
        elif item < 0:
            task.alone = True  # so that it will be known the next time
        if not task.todo:
            self._accounts.forget(task)
        self._feed(LifeEnded(who, task.number, time.monotonic() if task.todo else None))

    def _split(self, task: Task) -> None:
        for number in self._accounts.split(task):
            self._feed(Submitted(number, task.call.kit.number))

    # -- what to do about it -------------------------------------------------------------------

    def _feed(self, event: TaskEvent) -> None:
        """An event that follows from another one waits until that is dealt with."""
        self._events.append(event)
        if self._feeding:
            return
        self._feeding = True
        try:
            while self._events:
                for command in self._machine.handle(self._events.popleft(), time.monotonic()):
                    if not self.closed:
                        self._carry_out(command)
        finally:
            self._feeding = False
        self._deadline = self._machine.next_deadline()

    def _carry_out(self, command: TaskCommand) -> None:
        match command:
            case Hand():
                self._hand(command.who, self._tasks[command.task])
            case Launch():
                self._roster.add(command.who, self._launcher.launch(command.who.seat))
                self._dispatch.welcome(command.who)
            case Forget():
                self._accounts.fail(self._tasks[command.task], self._withdrawal)
            case Dismiss():
                self._roster.retire(command.who)
            case Recall():
                self._feed(Recalled(command.who, self._dispatch.recalls.recall(command.who)))
            case AllDone():
                self._shut()
            case GiveUp():
                self._break(never_ready(command.deaths, self._last))
            case _:
                assert_never(command)

    def _hand(self, who: Worker, task: Task) -> None:
        error = self._dispatch.pack(task)
        if error is None and task.call.begin():
            self._dispatch.send(who, task)
            self._timeouts.watch(task)
            return
        if error is not None and len(task.todo) > 1 and task.call.kit.error is None:  # only one of them is to blame
            self._split(task)
        else:
            self._accounts.fail(task, error)
        self._feed(TaskEnded(who, task.number, 0.0))

    def _break(self, failure: PoolBroken) -> None:
        """No task will be done any more."""
        self.failure = self.failure or failure
        self._feeding = False
        if not self.closed:
            self._shut()
        self._accounts.fail_all(self.failure)

    def _shut(self) -> None:
        self.closed = True
        leaving.closed(self)
        self._roster.close()
        self._launcher.close()
        self._outlet.close()

    def _doing(self, entry: Entry) -> str:
        task = self._tasks.get(entry.batch)
        if task is None or entry.phase is not Phase.RUNNING:
            return entry.words()
        item = task.todo[0] if len(task.todo) == 1 else entry.sample
        return f"in {task.call.describe(item) if item in task.todo else task.call.kit.name}"

    def _whose(self, who: Worker) -> Whose:
        return Whose(who.seat, who.life, self._roster[who].process.pid)
