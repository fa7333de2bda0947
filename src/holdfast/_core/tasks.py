"""The pool's state machine: tasks come in, and it says who runs them.

A task goes to a worker that is free. Where nobody is, a worker that is busy with short ones gets a few more on its
hands, so that it need not wait for us between them: as many as it does in 2 ms, going by how long tasks of the same
kind took, and no more than were seen of that kind. Where one takes long all the same, what waits behind it is taken
back as soon as somebody is free for it: it would be late there, or never done if the one in front waits for it. When a
worker dies, what it had not begun goes back to the front of the queue; what becomes of the one it had begun, the engine
says.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import OrderedDict

from .budget import pause
from .events import Ticked, Worker, WorkerReady
from .seats import Phase
from .story import Story
from .task_events import (
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
from .task_paces import TaskPaces
from .task_seats import TaskLimits as TaskLimits
from .task_seats import TaskSeat

ROUTINE = frozenset({Submitted, TaskEnded, Ticked})
PATIENCE = 0.005  # seconds that a task may run before others who are free get what waits behind it


class TaskMachine:
    """Decides; never acts. ``handle`` is the only way in."""

    def __init__(self, limits: TaskLimits) -> None:
        self.limits = limits
        self.seats = [TaskSeat(number) for number in range(limits.seats)]
        self.story: Story[TaskEvent, TaskCommand] = Story(ROUTINE, length=1024)
        self.queue: OrderedDict[int, int] = OrderedDict()  # task -> kind
        self.later: list[tuple[float, int, int]] = []  # to be tried again: when, task, kind
        # Workers that may be sent something: first those with nothing to do, then the busy that may have room. One that
        # has none is looked at again when it has done a task: to look at all of them for each task would cost too much.
        self.able: OrderedDict[TaskSeat, None] = OrderedDict()
        self.vacant = limits.seats
        self.lifetime = math.inf if limits.recycle_after is None else limits.recycle_after
        self.paces = TaskPaces()
        self.ahead = self.paces.ahead
        self.look_at = math.inf  # nothing is to be taken back before, if not later
        self.now = 0.0
        self.restarts = 0  # lives that ended and were not asked to
        self.row = 0  # processes that ended before they were ready, one after the other
        self.eager = self.draining = self.over = False

    def handle(self, event: TaskEvent, now: float) -> list[TaskCommand]:
        """Take in one event and return what to do about it, in order."""
        self.now = now
        commands: list[TaskCommand] = []
        if not self.over:
            self._take_in(event, commands)
            if not self.over:
                self._settle(commands)
        self.story.tell(now, event, commands)
        return commands

    def next_deadline(self) -> float:
        """When the engine must wake even if nothing happens; ``inf`` for never."""
        if self.over:
            return math.inf
        due = self.later[0][0] if self.later else math.inf
        if self.look_at < math.inf and not self.queue:
            due = min(due, self._recall_at())
        return min([due, *(seat.start_at for seat in self._pausing())]) if self.vacant else due

    def is_held_by(self, who: Worker, task: int) -> bool:
        """Whether this worker is to run this task."""
        seat = self.seats[who.seat]
        return who.life == seat.life and task in seat.held

    def is_leaving(self, who: Worker) -> bool:
        """Whether this worker was dismissed, so that its end is expected."""
        seat = self.seats[who.seat]
        return who.life == seat.life and seat.phase is Phase.RETIRING

    def waiting_on(self) -> list[str]:
        """Who owes us an event. Empty while there are tasks means a deadlock, and a bug."""
        if self.over:
            return []
        owed = [words for seat in self.seats if (words := seat.owes()) is not None]
        owed += [f"task {task} to be tried again in {at - self.now:.1f} s" for at, task, _ in self.later]
        for seat in self._pausing():
            owed.append(f"worker {seat.number} to be started again in {seat.start_at - self.now:.1f} s")
        return owed

    # -- one method per event ------------------------------------------------------------------

    def _take_in(self, event: TaskEvent, commands: list[TaskCommand]) -> None:
        match event:  # the two of every task come first
            case Submitted():
                self.queue[event.task] = event.kind
            case TaskEnded():
                self._on_end(event, commands)
            case WorkerReady():
                self._on_ready(event.who)
            case TaskFailed():
                kind = self._put_down(event.who, event.task, commands)
                if kind is not None:
                    insort(self.later, (event.again_at, event.task, kind))
            case Recalled():
                self._on_recall(event)
            case LifeEnded():
                self._on_death(event, commands)
            case Withdrawn():
                self._on_withdrawal(event.task, commands)
            case Opened():
                self.eager = not self.draining
            case Drained():
                self.draining, self.eager = True, False
            case Ticked():
                pass  # _settle looks at the clock

    def _on_ready(self, who: Worker) -> None:
        seat = self.seats[who.seat]
        if who.life == seat.life and seat.phase is Phase.STARTING:
            seat.phase, self.row = Phase.READY, 0
            self._becomes_free(seat)

    def _on_end(self, event: TaskEnded, commands: list[TaskCommand]) -> None:
        kind = self._put_down(event.who, event.task, commands)
        if kind is None or event.seconds <= 0.0:  # it was not sent after all: says nothing about its kind
            return
        if self.paces.observe(kind, event.seconds):  # now the busy may have room for more of them
            self.able.update((seat, None) for seat in self.seats if seat.held)

    def _put_down(self, who: Worker, task: int, commands: list[TaskCommand]) -> int | None:
        """The worker has done with this one, of the kind that is returned; None for a word of the dead."""
        seat = self.seats[who.seat]
        held = seat.held
        if who.life != seat.life or task not in held:
            return None
        if task == next(iter(held)):
            seat.long_at = self.now + PATIENCE
            if seat.recalled:
                seat.recalled = False
                self.look_at = min(self.look_at, seat.long_at)
        kind = held.pop(task)
        seat.deaths = 0
        if held:
            self.able[seat] = None
        elif seat.taken < self.lifetime:
            self._becomes_free(seat)
        else:
            self._dismiss(seat, commands)
        return kind

    def _becomes_free(self, seat: TaskSeat) -> None:
        self.able[seat] = None
        self.able.move_to_end(seat, last=False)

    def _on_recall(self, event: Recalled) -> None:
        seat = self.seats[event.who.seat]
        if event.who.life != seat.life or not seat.held:
            return
        for task in reversed(event.tasks):
            if task in seat.held:
                self._put_first(task, seat.held.pop(task))
                seat.taken -= 1
        if seat.held:
            self.able[seat] = None
        else:  # it had not begun any of them
            seat.recalled = False
            self._becomes_free(seat)

    def _on_death(self, event: LifeEnded, commands: list[TaskCommand]) -> None:
        seat = self.seats[event.who.seat]
        if event.who.life != seat.life or seat.phase is Phase.EMPTY:
            return
        phase, task_is_done = seat.phase, event.running in seat.held and event.again_at is None
        self._take_back(seat, event)
        self.able.pop(seat, None)
        seat.vacate()
        self.vacant += 1
        if phase is not Phase.RETIRING:
            self.restarts += 1
            seat.deaths = 0 if task_is_done else seat.deaths + 1
            seat.start_at = self.now + pause(seat.deaths)
        if phase is Phase.STARTING:
            self.row += 1
            if self.row >= self.limits.deaths_in_a_row:
                self.over = True
                commands.append(GiveUp(self.row))

    def _take_back(self, seat: TaskSeat, event: LifeEnded) -> None:
        while seat.held:
            task, kind = seat.held.popitem()  # the last one
            if task != event.running:
                self._put_first(task, kind)
            elif event.again_at is not None:
                insort(self.later, (event.again_at, task, kind))

    def _on_withdrawal(self, task: int, commands: list[TaskCommand]) -> None:
        if self.queue.pop(task, None) is None:
            left = [entry for entry in self.later if entry[1] != task]
            if len(left) == len(self.later):
                return
            self.later = left
        commands.append(Forget(task))

    # -- what follows --------------------------------------------------------------------------

    def _settle(self, commands: list[TaskCommand]) -> None:
        if self.later and self.later[0][0] <= self.now:
            self._bring_back()
        if self.queue and self.able:
            self._hand_out(commands)
        if self.vacant and (self.queue or self.eager):
            self._start(commands)
        if self.look_at <= self.now and not self.queue:
            self._recall(commands)
        if self.draining and not self._has_tasks():
            self._let_go(commands)

    def _bring_back(self) -> None:
        due = [entry for entry in self.later if entry[0] <= self.now]
        del self.later[: len(due)]
        for _, task, kind in reversed(due):
            self._put_first(task, kind)

    def _put_first(self, task: int, kind: int) -> None:
        self.queue[task] = kind
        self.queue.move_to_end(task, last=False)

    def _hand_out(self, commands: list[TaskCommand]) -> None:
        queue, able = self.queue, self.able
        while queue and able:
            seat = next(iter(able))
            held = seat.held
            if not held:
                seat.long_at = self.now + PATIENCE
            elif not self._has_room(seat):
                del able[seat]
                continue
            elif seat.long_at < self.look_at:
                self.look_at = seat.long_at
            able.move_to_end(seat)  # the next one is for somebody else
            task, kind = queue.popitem(last=False)
            held[task] = kind
            seat.taken += 1
            commands.append(Hand(seat.who, task))

    def _has_room(self, seat: TaskSeat) -> bool:
        """Whether the next task, if it is a short one, may wait behind what this worker runs."""
        held, queue, ahead = seat.held, self.queue, self.ahead
        waiting = len(held)
        if seat.recalled or seat.taken >= self.lifetime or waiting > ahead.get(queue[next(iter(queue))], 0):
            return False
        return waiting <= ahead.get(held[next(iter(held))], 0)

    def _start(self, commands: list[TaskCommand]) -> None:
        wanted = self._wanted()
        for seat in self.seats:
            if wanted > 0 and seat.phase is Phase.EMPTY and seat.start_at <= self.now:
                seat.phase = Phase.STARTING
                self.vacant -= 1
                wanted -= 1
                commands.append(Launch(seat.who))

    def _wanted(self) -> int:
        """How many more workers would have something to do, or are to be there all the same."""
        if self.eager:
            return self.vacant
        return len(self.queue) - sum(seat.phase is Phase.STARTING for seat in self.seats)

    def _pausing(self) -> list[TaskSeat]:
        """Seats that are to be filled, and not yet."""
        return [seat for seat in self.seats if seat.phase is Phase.EMPTY] if self._wanted() > 0 else []

    def _recall(self, commands: list[TaskCommand]) -> None:
        if self._free_at() > self.now:
            return
        self.look_at = math.inf
        for seat in self._crowded():
            if seat.long_at <= self.now:
                seat.recalled = True
                commands.append(Recall(seat.who))
            else:
                self.look_at = min(self.look_at, seat.long_at)

    def _recall_at(self) -> float:
        """When to take back something, if nothing happens until then."""
        return max(self._free_at(), min((seat.long_at for seat in self._crowded()), default=math.inf))

    def _crowded(self) -> list[TaskSeat]:
        """Those with something behind what they run, that may be taken back."""
        return [seat for seat in self.seats if len(seat.held) > 1 and not seat.recalled]

    def _free_at(self) -> float:
        """From when on there is somebody without a task, or a seat in which one would be started for it."""
        if self.able and not next(iter(self.able)).held:
            return -math.inf
        empty = [seat for seat in self.seats if seat.phase is Phase.EMPTY] if self.vacant else []
        return min((seat.start_at for seat in empty), default=math.inf)

    def _has_tasks(self) -> bool:
        return bool(self.queue or self.later) or any(seat.held for seat in self.seats)

    def _let_go(self, commands: list[TaskCommand]) -> None:
        for seat in self.seats:
            if seat.phase in (Phase.READY, Phase.STARTING):
                self._dismiss(seat, commands)
        if self.vacant == len(self.seats):
            self.over = True
            commands.append(AllDone())

    def _dismiss(self, seat: TaskSeat, commands: list[TaskCommand]) -> None:
        seat.phase = Phase.RETIRING
        self.able.pop(seat, None)
        commands.append(Dismiss(seat.who))
