"""A world for the pool's machine to live in: it plays the workers, the clock and those who submit tasks.

As in ``world.py``, which is the loader's, nothing is a process, nothing waits, and a referee watches every answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from random import Random

from .._core.events import Ticked, Worker, WorkerReady
from .._core.task_events import (
    AllDone,
    Dismiss,
    Drained,
    Forget,
    GiveUp,
    Hand,
    Launch,
    LifeEnded,
    Opened,
    Submitted,
    TaskCommand,
    TaskEnded,
    TaskEvent,
    TaskFailed,
    Withdrawn,
)
from .._core.tasks import TaskLimits, TaskMachine
from .task_referee import TaskReferee

Move = Callable[[Random], None]

DURATIONS = (5e-7, 2e-6, 3e-5, 1e-4, 6e-4, 0.0019, 0.0021, 0.5)  # of the kinds of tasks that there are, in seconds
MOST_WAITING = 20


class TaskWorld:
    """What is really so, as opposed to what the machine believes.

    ``deadly``: how often workers die at work, beside 10 for a task that is done; ``stillborn``: before they are ready.
    ``brisk``: how soon workers get ready, on the same scale; ``flood``: how many tasks are submitted at once.
    ``benign``: nobody dies, nothing fails: the machine must then come to its end.
    """

    def __init__(
        self,
        limits: TaskLimits,
        *,
        deadly: float = 0.7,
        stillborn: float = 0.3,
        brisk: float = 6,
        flood: int = 5,
        kinds: tuple[int, ...] = tuple(range(len(DURATIONS))),
    ) -> None:
        self.limits, self.machine, self.now = limits, TaskMachine(limits), 0.0
        self.deadly, self.stillborn, self.brisk, self.flood, self.kinds = deadly, stillborn, brisk, flood, kinds
        self.benign = False
        # Processes
        self.starting: list[Worker] = []
        self.alive: list[Worker] = []
        self.dismissed: list[Worker] = []  # of both
        self.inbox: dict[Worker, list[int]] = {}
        self.taken: dict[Worker, int] = {}  # tasks that each life was sent
        self.dead: list[Worker] = []
        self.last_words: list[tuple[Worker, int]] = []  # on their way when their worker died
        # Tasks
        self.kind_of: list[int] = []  # of all there ever were: a task's number is its place
        self.line: list[int] = []  # with nobody, in the order in which they are to be sent
        self.later: dict[int, float] = {}  # to be tried again, and when
        self.withdrawn: int | None = None  # by the present event, and not yet forgotten
        self.opened = self.drained = self.over = False
        self.referee = TaskReferee(self)

    def process_in(self, seat: int) -> Worker | None:
        return next((who for who in self.starting + self.alive if who.seat == seat), None)

    def busy(self) -> list[Worker]:
        return [who for who in self.alive if self.inbox[who]]

    def is_spent(self, who: Worker) -> bool:
        return self.limits.recycle_after is not None and self.taken[who] >= self.limits.recycle_after

    def outstanding(self) -> bool:
        return bool(self.line or self.later or self.busy())

    # -- the machine is told, and obeyed -------------------------------------------------------

    def happens(self, event: TaskEvent) -> None:
        """The books say already what the event means."""
        due = sorted((again_at, task) for task, again_at in self.later.items() if again_at <= self.now)
        self.line[:0] = [task for _, task in due]
        for _, task in due:
            del self.later[task]
        self.referee.hears(event)
        for command in self.machine.handle(event, self.now):
            self.referee.sees(command)
            self.carry_out(command)
        self.referee.looks_around()

    def carry_out(self, command: TaskCommand) -> None:
        match command:
            case Launch(who):
                self.starting.append(who)
                self.inbox[who], self.taken[who] = [], 0
            case Hand(who, task):
                self.line.remove(task)
                self.inbox[who].append(task)
                self.taken[who] += 1
            case Forget():
                self.withdrawn = None
            case Dismiss(who):
                self.dismissed.append(who)
            case GiveUp() | AllDone():
                self.over = True

    # -- what can happen next ------------------------------------------------------------------

    def moves(self) -> Iterator[tuple[float, Move]]:
        """Every move that is possible now, with its weight."""
        yield 1.5, self.time_passes
        if not self.drained and len(self.line) < MOST_WAITING:
            yield 3, self.submits
        if self.starting:
            yield self.brisk, self.gets_ready
        if self.busy():
            yield 10, self.finishes
        if self.dismissed:
            yield 3, self.goes
        if self.last_words:
            yield 2, self.speaks_late
        if not self.benign:
            yield from self.mishaps()

    def mishaps(self) -> Iterator[tuple[float, Move]]:
        if self.busy():
            yield self.deadly, self.dies_at_work
            yield 0.5, self.fails
            yield 0.2, self.cannot_be_sent
        if self.starting:
            yield self.stillborn, self.dies_unborn
        if self.alive:
            yield 0.2, self.dies_anywhere
        if self.dead:
            yield 0.3, self.is_mistaken_for_alive
        if self.kind_of:
            yield 0.7, self.is_withdrawn
        yield 0.04, self.opens
        yield 0.02, self.drains

    def submits(self, rng: Random) -> None:
        for _ in range(rng.randint(1, self.flood)):
            task, kind = len(self.kind_of), rng.choice(self.kinds)
            self.kind_of.append(kind)
            self.line.append(task)
            self.happens(Submitted(task, kind))

    def gets_ready(self, rng: Random) -> None:
        who = rng.choice(self.starting)
        self.starting.remove(who)
        self.alive.append(who)
        self.happens(WorkerReady(who))

    def finishes(self, rng: Random) -> None:
        who = rng.choice(self.busy())
        task = self.inbox[who].pop(0)
        seconds = DURATIONS[self.kind_of[task]] * rng.choice([0.5, 1, 1, 1, 2, 30])
        self.happens(TaskEnded(who, task, seconds))

    def fails(self, rng: Random) -> None:
        who = rng.choice(self.busy())
        task = self.inbox[who].pop(0)
        self.later[task] = again_at = self._soon(rng)
        self.happens(TaskFailed(who, task, again_at))

    def cannot_be_sent(self, rng: Random) -> None:
        """The engine was told to send the last one, and it has an error for a result."""
        who = rng.choice(self.busy())
        self.happens(TaskEnded(who, self.inbox[who].pop(), 0.0))

    def _soon(self, rng: Random) -> float:
        return self.now + rng.choice([0.0, 0.002, 0.5])

    def dies_at_work(self, rng: Random) -> None:
        """Most often in the first task; or further than we heard, or between two, or in one that it had answered."""
        who = rng.choice(self.busy())
        running = rng.choice([*self.inbox[who][:1] * 8, *self.inbox[who], None, rng.randrange(len(self.kind_of))])
        again_at = self._soon(rng) if running is not None and rng.random() < 0.5 else None
        self._dies(who, running, again_at)

    def dies_unborn(self, rng: Random) -> None:
        self._dies(rng.choice(self.starting))

    def dies_anywhere(self, rng: Random) -> None:
        self._dies(rng.choice(self.alive))

    def goes(self, rng: Random) -> None:
        """As it was told to."""
        self._dies(rng.choice(self.dismissed))

    def _dies(self, who: Worker, running: int | None = None, again_at: float | None = None) -> None:
        event, held = LifeEnded(who, running, again_at), self.inbox.pop(who)
        self.referee.loses(event, held)
        (self.starting if who in self.starting else self.alive).remove(who)
        if who in self.dismissed:
            self.dismissed.remove(who)
        self.dead.append(who)
        self.last_words += [(who, task) for task in held]
        if running in held and again_at is not None:
            self.later[running] = again_at
        self.line[:0] = [task for task in held if task != running]
        self.happens(event)

    def speaks_late(self, rng: Random) -> None:
        who, task = self.last_words.pop(rng.randrange(len(self.last_words)))
        events: list[TaskEvent] = [TaskEnded(who, task, 1e-6), TaskFailed(who, task, self.now + 1)]
        self.happens(rng.choice(events))

    def is_mistaken_for_alive(self, rng: Random) -> None:
        who, task = rng.choice(self.dead), rng.randrange(len(self.kind_of) or 1)
        events: list[TaskEvent] = [WorkerReady(who), LifeEnded(who, task), LifeEnded(who, task, self.now)]
        self.happens(rng.choice(events))

    def is_withdrawn(self, rng: Random) -> None:
        """Any: one that waits, one that is to be tried again, one that somebody runs, one that is done."""
        task = rng.choice([*self.line, *self.later, rng.randrange(len(self.kind_of))])
        if task in self.line or task in self.later:
            self.withdrawn = task
            self.later.pop(task, None)
            self.line = [other for other in self.line if other != task]
        self.happens(Withdrawn(task))

    def time_passes(self, rng: Random) -> None:
        due = self.machine.next_deadline()
        if due < math.inf and (self.benign or rng.random() < 0.5):
            self.now = max(self.now, due)
        else:
            self.now += rng.choice([0.0005, 0.003, 0.06, 1.0])
        self.happens(Ticked())

    def opens(self, rng: Random) -> None:
        self.opened = True
        self.happens(Opened())

    def drains(self, rng: Random) -> None:
        self.drained = True
        self.happens(Drained())


def some_task_limits(rng: Random) -> TaskLimits:
    return TaskLimits(
        seats=rng.choice([1, 2, 2, 3, 5, 8]),
        recycle_after=rng.choice([None, None, 1, 3, 20]),
        crash_loop=rng.choice([1, 3, 10, 10**6]),
    )


def live_tasks(world: TaskWorld, rng: Random, steps: int) -> TaskWorld:
    """Let anything happen for a while, then nothing bad any more: all tasks must come to their end by themselves."""
    for _ in range(steps):
        _move(world, rng)
        if world.over and rng.random() < 0.2:
            return world
    world.benign = True
    world.drains(rng)
    for _ in range(1000 + 20 * len(world.kind_of)):
        if world.over:
            return world
        _move(world, rng)
    world.referee.promise(False, "nothing bad happens any more, and still the tasks do not end")
    return world


def task_walk(seed: int, steps: int = 250, limits: TaskLimits | None = None) -> TaskWorld:
    """A seeded walk through a pool's life: the same seed, the same story."""
    rng = Random(seed)
    world = TaskWorld(
        limits or some_task_limits(rng),
        deadly=rng.choice([0.1, 0.7, 5, 40]),
        stillborn=rng.choice([0.1, 1, 20]),
        brisk=rng.choice([0.3, 6]),
        flood=rng.choice([1, 5, 30]),
        kinds=tuple(rng.sample(range(len(DURATIONS)), rng.choice([1, 2, 5]))),
    )
    if rng.random() < 0.5:
        world.opens(rng)
    return live_tasks(world, rng, steps)


def _move(world: TaskWorld, rng: Random) -> None:
    weights, moves = zip(*world.moves())
    rng.choices(moves, weights)[0](rng)
