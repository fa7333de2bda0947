"""A world for the pool's machine to live in: it plays the workers, the clock and those who submit tasks.

As in ``world.py``, which is the loader's, nothing is a process, nothing waits, and a referee watches every answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from random import Random

from .._core.events import Ticked, Worker, WorkerReady
from .._core.task_events import (
    Drained,
    LifeEnded,
    Opened,
    Recalled,
    Submitted,
    TaskEnded,
    TaskEvent,
    TaskFailed,
    Withdrawn,
)
from .._core.tasks import TaskLimits, TaskMachine
from .task_books import TaskBooks
from .task_referee import TaskReferee

Move = Callable[[Random], None]

DURATIONS = (5e-7, 2e-6, 3e-5, 1e-4, 6e-4, 0.0019, 0.0021, 0.5)  # of the kinds of tasks that there are, in seconds


class TaskWorld(TaskBooks):
    """Makes things happen, and does what the machine says.

    ``deadly``: how often workers die at work, beside 10 for a task that is done; ``stillborn``: before they are ready.
    ``brisk``: how soon workers get ready, on the same scale; ``flood``: how many tasks are submitted at once;
    ``backlog``: not while so many wait.
    ``benign``: nobody dies, nothing fails: the machine must then come to its end.
    ``stubborn``: a worker in this seat ends no task while it holds another one, as if it waited for it.
    """

    def __init__(
        self,
        limits: TaskLimits,
        *,
        deadly: float = 0.7,
        stillborn: float = 0.3,
        brisk: float = 6,
        flood: int = 5,
        backlog: int = 20,
        kinds: tuple[int, ...] = tuple(range(len(DURATIONS))),
        stubborn: int | None = None,
    ) -> None:
        super().__init__(limits)
        self.machine = TaskMachine(limits)
        self.deadly, self.stillborn, self.brisk = deadly, stillborn, brisk
        self.flood, self.backlog, self.kinds = flood, backlog, kinds
        self.benign, self.stubborn = False, stubborn if limits.seats > 1 else None
        self.referee = TaskReferee(self)

    def waits_for_the_next(self, who: Worker) -> bool:
        return who.seat == self.stubborn and who not in self.has_answered and len(self.at_hand(who)) > 1

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

    # -- what can happen next ------------------------------------------------------------------

    def moves(self) -> Iterator[tuple[float, Move]]:
        """Every move that is possible now, with its weight."""
        yield 1.5, self.time_passes
        if not self.drained and len(self.line) < self.backlog:
            yield 3, self.submits
        if self.starting:
            yield self.brisk, self.gets_ready
        if not all(map(self.waits_for_the_next, self.working())):
            yield 10, self.finishes
        if self.asked:
            yield 5, self.gives_back
        if self.answers:
            yield 5, self.is_heard
        if self.dismissed:
            yield 3, self.goes
        if self.last_words:
            yield 2, self.speaks_late
        if not self.benign:
            yield from self.mishaps()

    def mishaps(self) -> Iterator[tuple[float, Move]]:
        if self.working():
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
        who = rng.choice([who for who in self.working() if not self.waits_for_the_next(who)])
        task = self._ends(who, self.at_hand(who)[0])
        seconds = DURATIONS[self.kind_of[task]] * rng.choice([0.5, 1, 1, 1, 2, 30])
        self.happens(TaskEnded(who, task, seconds))

    def fails(self, rng: Random) -> None:
        who = rng.choice(self.working())
        task = self._ends(who, self.at_hand(who)[0])
        self.later[task] = again_at = self._soon(rng)
        self.happens(TaskFailed(who, task, again_at))

    def cannot_be_sent(self, rng: Random) -> None:
        """The engine was told to send the last one, and it has an error for a result."""
        who = rng.choice(self.working())
        self.happens(TaskEnded(who, self._ends(who, self.at_hand(who)[-1]), 0.0))

    def _ends(self, who: Worker, task: int) -> int:
        self.referee.sees_the_end(who, task)
        self.has_answered.discard(who)
        self.inbox[who].remove(task)
        return task

    def gives_back(self, rng: Random) -> None:
        """Most often all but one; or it had not yet seen that one, or has done it and begun another."""
        who = self.asked.pop(rng.randrange(len(self.asked)))
        begun = 1 if self.benign else rng.choice([0, 1, 1, 1, 2])
        self.has_answered.add(who)
        self.answers.append(Recalled(who, tuple(self.at_hand(who)[begun:])))
        if rng.random() < 0.5:
            self.is_heard(rng)

    def is_heard(self, rng: Random) -> None:
        answer = self.answers.pop(rng.randrange(len(self.answers)))
        if answer.who in self.alive:
            self.inbox[answer.who] = [task for task in self.inbox[answer.who] if task not in answer.tasks]
            self.taken[answer.who] -= len(answer.tasks)
            self.line[:0] = answer.tasks
        self.happens(answer)

    def _soon(self, rng: Random) -> float:
        return self.now + rng.choice([0.0, 0.002, 0.5])

    def dies_at_work(self, rng: Random) -> None:
        """Most often in the first task; or further than we heard, or between two, or in one that it had answered."""
        who = rng.choice(self.working())
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
        if who in self.asked:
            self.asked = [other for other in self.asked if other != who]
            self.answers.append(Recalled(who, tuple(held[1:])))
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
        """Any task; or one that the present worker in its seat has."""
        who = rng.choice(self.dead)
        heir = self.process_in(who.seat)
        task = rng.choice([rng.randrange(len(self.kind_of) or 1), *(self.inbox[heir] if heir else [])])
        events: list[TaskEvent] = [WorkerReady(who), LifeEnded(who, task), LifeEnded(who, task, self.now)]
        events.append(Recalled(who, (task,)))
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
    fair = Random(rng.getrandbits(32))  # a test's own choices may be the same for ever, and then nothing ends
    world.drains(fair)
    for _ in range(1000 + 20 * len(world.kind_of)):
        if world.over:
            return world
        _move(world, fair)
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
        backlog=rng.choice([1, 20]),
        kinds=tuple(rng.sample(range(rng.choice([4, len(DURATIONS)])), rng.choice([1, 2, 4]))),
        stubborn=rng.choice([None, 0, 1]),
    )
    if rng.random() < 0.5:
        world.opens(rng)
    return live_tasks(world, rng, steps)


def _move(world: TaskWorld, rng: Random) -> None:
    weights, moves = zip(*world.moves())
    rng.choices(moves, weights)[0](rng)
