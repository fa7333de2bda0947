"""What the pool's machine promises, checked at every step of a simulated world.

The referee reads the world and never changes it. What the promises count (deaths, restarts, how long tasks take) it
counts by itself, and the figures in them stand here a second time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .._core.events import Worker, WorkerReady
from .._core.pace import Pace
from .._core.task_events import (
    AllDone,
    Dismiss,
    Forget,
    GiveUp,
    Hand,
    Launch,
    LifeEnded,
    Recall,
    Recalled,
    TaskCommand,
    TaskEnded,
    TaskEvent,
    TaskFailed,
)
from .referee import BrokenPromise

if TYPE_CHECKING:
    from .task_world import TaskWorld

AHEAD = 0.002  # seconds of work
MOST_AHEAD = 16
PATIENCE = 0.005  # seconds


class TaskReferee:
    def __init__(self, world: TaskWorld) -> None:
        self.world, self.limits = world, world.limits
        self.event: TaskEvent | None = None
        self.lives = [0] * self.limits.seats
        self.deaths = [0] * self.limits.seats  # in a row, of a seat
        self.due = [-math.inf] * self.limits.seats  # its next life begins not before
        self.row = self.restarts = 0
        self.paces: dict[int, Pace] = {}
        self.long_at: dict[Worker, float] = {}  # when the task that it runs has taken long
        self.recalled: set[Worker] = set()  # from these, while that task runs
        self.looked_at: list[Worker] = []  # by this event, whether they have room
        self.handed: set[int] = set()  # the kinds of tasks that were sent since

    def promise(self, kept: object, words: str) -> None:
        if not kept:
            story = self.world.machine.story.lines()[-30:]
            raise BrokenPromise("\n".join([words, *story, f"after {self.event} with {self.limits}"]))

    # -- before the machine decides ------------------------------------------------------------

    def hears(self, event: TaskEvent) -> None:
        self.event, self.looked_at = event, []
        self.handed.clear()
        match event:
            case WorkerReady(who) if who in self.world.alive and who not in self.world.dismissed:
                self.row = 0
            case TaskEnded(who) | TaskFailed(who) if who in self.world.alive:
                self.deaths[who.seat] = 0
                self.looked_at = [who]
                if isinstance(event, TaskEnded) and event.seconds:
                    self._learns(self.world.kind_of[event.task], event.seconds)

            case Recalled(who) if who in self.world.alive:
                self.looked_at = [who]
                if not self.world.inbox[who]:
                    self.recalled.discard(who)

    def sees_the_end(self, who: Worker, task: int) -> None:
        """A worker has done with a task; the world's books are as they were."""
        if task == self.world.inbox[who][0]:
            self.long_at[who] = self.world.now + PATIENCE
            self.recalled.discard(who)

    def _learns(self, kind: int, seconds: float) -> None:
        if kind not in self.paces:
            self.looked_at = [*self.world.alive]
        self.paces.setdefault(kind, Pace()).observe(seconds)

    def loses(self, event: LifeEnded, held: list[int]) -> None:
        """A living worker goes; the world's books are as they were."""
        who, world = event.who, self.world
        if who in world.dismissed:
            return
        self.restarts += 1
        ended = event.running in held and event.again_at is None
        self.deaths[who.seat] = 0 if ended else self.deaths[who.seat] + 1
        deaths = self.deaths[who.seat]
        self.due[who.seat] = world.now + (0.0 if deaths <= 2 else min(5.0, 0.1 * 2.0 ** (deaths - 3)))
        if who in world.starting:
            self.row += 1

    # -- each decision, before it is carried out -----------------------------------------------

    def sees(self, command: TaskCommand) -> None:
        self.promise(not self.world.over, f"{command} after the end")
        match command:
            case Launch(who):
                self._sees_launch(who)
            case Hand(who, task):
                self._sees_hand(who, task)
            case Recall(who):
                self._sees_recall(who)
            case Forget(task):
                self.promise(task == self.world.withdrawn, "forgot what is wanted, or with somebody, or gone")
            case Dismiss(who):
                self._sees_dismissal(who)
            case GiveUp(deaths):
                self.promise(self.row >= self._too_many(), "gave up before its time")
                self.promise(deaths == self.row, "a wrong number of deaths")
            case AllDone():
                self.promise(self.world.drained and not self.world.outstanding(), "all done, but for some tasks")
                self.promise(not self.world.starting + self.world.alive, "all done, but for some workers")

    def _too_many(self) -> int:
        return max(self.limits.crash_loop, 2 * self.limits.seats)

    def _sees_launch(self, who: Worker) -> None:
        self.promise(self.world.process_in(who.seat) is None, "two processes in one seat")
        self.promise(who.life == self.lives[who.seat] + 1, "a life that is not the next one")
        self.promise(self.world.now >= self.due[who.seat], "restarted before its pause was over")
        self.promise(self._wanted() > 0, "started without need")
        self.lives[who.seat] += 1

    def _wanted(self) -> int:
        """How many workers more there should be, if there were seats for them."""
        if self.world.opened and not self.world.drained:
            return self.limits.seats - len(self.world.starting) - len(self.world.alive)
        return len(self.world.line) - len(self.world.starting)

    def _sees_hand(self, who: Worker, task: int) -> None:
        world = self.world
        self.promise(who in world.alive, "sent to a worker that is not ready, or gone")
        self.promise(who not in world.dismissed and not world.is_spent(who), "sent to one that is to go")
        self.promise(all(task not in held for held in world.inbox.values()), "run by two at once")
        self.promise(task in world.line, "sent though it ended, was withdrawn, or is to be tried later")
        self.promise(task == world.line[0], f"sent before {world.line[0]}")
        if world.inbox[who]:
            self.promise(not self._idle(), "put behind another though somebody is idle")
            self.promise(self._room(who, task) > -1e-9, "more on its hands than it does in time")
        else:
            self.long_at[who] = world.now + PATIENCE
        self.handed.add(world.kind_of[task])
        self.looked_at.append(who)

    def _idle(self) -> list[Worker]:
        world = self.world
        return [who for who in world.alive if not (world.inbox[who] or who in world.dismissed or world.is_spent(who))]

    def _room(self, who: Worker, task: int) -> float:
        """What would be left of the time ahead with this task behind the others; negative if there is no room."""
        if who in self.recalled:
            return -1.0
        held, kinds = self.world.inbox[who], self.world.kind_of
        running, coming = self.paces.get(kinds[held[0]]), self.paces.get(kinds[task])
        if running is None or coming is None or len(held) > min(MOST_AHEAD, running.observed, coming.observed):
            return -1.0
        return AHEAD - len(held) * max(running.typical, coming.typical)

    def _sees_recall(self, who: Worker) -> None:
        world = self.world
        self.promise(who in world.alive, "taken back from one that is not ready, or gone")
        self.promise(len(world.inbox[who]) > 1, "taken back from one that has nothing to give")
        self.promise(who not in self.recalled, "taken back twice behind one task")
        self.promise(world.now >= self.long_at[who], "taken back before the task in front had taken long")
        self.promise(not world.line and self._free_at() <= world.now, "taken back for nobody")
        self.recalled.add(who)

    def _free_at(self) -> float:
        """From when on somebody would take a task that is taken back."""
        if self._idle():
            return -math.inf
        if self.world.opened and not self.world.drained:
            return math.inf
        return min((self.due[seat] for seat in self._empty()), default=math.inf)

    def _recall_at(self) -> float:
        world = self.world
        full = [who for who in world.alive if len(world.inbox[who]) > 1 and who not in self.recalled]
        if world.line or not full:
            return math.inf
        return max(self._free_at(), min(self.long_at[who] for who in full))

    def _sees_dismissal(self, who: Worker) -> None:
        world = self.world
        self.promise(who in world.starting + world.alive, "let go of a worker that is not there")
        self.promise(who not in world.dismissed, "let go of twice")
        self.promise(not world.inbox[who], "let go of with work on its hands")
        finished = world.drained and not world.outstanding()
        self.promise(finished or world.is_spent(who), "let go of without need")

    # -- after all of them ---------------------------------------------------------------------

    def looks_around(self) -> None:
        world, machine = self.world, self.world.machine
        self.promise(machine.over == world.over, "over, and does not say so")
        self.promise(machine.restarts == self.restarts or world.over, "a wrong number of restarts")
        if world.over:
            self.promise(not machine.waiting_on() and machine.next_deadline() == math.inf, "waits after the end")
            return
        self.promise(self.row < self._too_many(), "a crash loop goes on")
        self.promise(world.withdrawn is None, "withdrawn, and not forgotten")
        self.promise(not world.line or not self._idle(), "a task waits, and a worker is idle")
        self._what_is_held_is_known()
        self._those_who_may_go_are_dismissed()
        self._nothing_is_put_off()
        self._room_is_used()
        self._nobody_waits_for_nobody()

    def _what_is_held_is_known(self) -> None:
        world = self.world
        for who in world.starting + world.alive:
            self.promise(world.machine.is_leaving(who) == (who in world.dismissed), "dismissed, and not known to be")
            for task in world.inbox[who][-3:]:
                self.promise(world.machine.is_held_by(who, task), "a worker has more than is known")
        for who, task in world.last_words[-3:]:
            self.promise(not world.machine.is_held_by(who, task), "the dead still have a task")

    def _those_who_may_go_are_dismissed(self) -> None:
        world = self.world
        staying = [who for who in world.starting + world.alive if who not in world.dismissed]
        tired = [who for who in staying if world.is_spent(who) and not world.inbox[who]]
        self.promise(not tired, f"{tired} have done their share, and are not let go of")
        if world.drained and not world.outstanding():
            self.promise(not staying, f"all is done, and {staying} are not let go of")
            self.promise(world.starting or world.alive, "all is done, and nobody is told")

    def _nothing_is_put_off(self) -> None:
        deadline, now = self.world.machine.next_deadline(), self.world.now
        pauses, recall = [self.due[seat] for seat in self._pausing()], self._recall_at()
        self.promise(min(pauses, default=math.inf) > now, "a seat stays empty though its pause is over")
        self.promise(recall > now, "tasks wait behind one that takes long, and others have nothing to do")
        self.promise(deadline == min([*self.world.later.values(), *pauses, recall]), "wakes too early or too late")

    def _pausing(self) -> list[int]:
        return self._empty() if self._wanted() > 0 else []

    def _empty(self) -> list[int]:
        taken = {who.seat for who in self.world.starting + self.world.alive}
        return [seat for seat in range(self.limits.seats) if seat not in taken]

    def _room_is_used(self) -> None:
        """A worker that has no room for one kind is not asked again for the next, until it has done a task."""
        world = self.world
        if not world.line or self.handed - {world.kind_of[world.line[0]]}:
            return
        for who in self.looked_at:
            if world.inbox[who] and not world.is_spent(who):
                self.promise(self._room(who, world.line[0]) < 1e-9, "a task waits, and a worker has room")

    def _nobody_waits_for_nobody(self) -> None:
        world = self.world
        truth = [f"worker {who.seat} to be ready" for who in world.starting if who not in world.dismissed]
        truth += [f"worker {who.seat} to end" for who in world.dismissed]
        truth += [f"task {world.inbox[who][0]} from worker {who.seat}" for who in world.busy()]
        truth += [f"task {task} to be tried again in {at - world.now:.1f} s" for task, at in world.later.items()]
        for seat in self._pausing():
            truth.append(f"worker {seat} to be started again in {self.due[seat] - world.now:.1f} s")
        owed = world.machine.waiting_on()
        self.promise(sorted(owed) == sorted(truth), f"waits for {owed}, in truth {truth}")
        self.promise(owed or not world.outstanding(), "there are tasks, and nobody is waited for")
