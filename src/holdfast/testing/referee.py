"""What the machine promises, checked at every step of a simulated world.

The referee reads the world and never changes it. It keeps the few counts that the promises speak of (deaths, restarts,
blame) by itself, so that it does not depend on the machine's own. The rules of the window are in ``rules.py``.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from .._core.commands import Command, Condemn, Deliver, Discard, Draw, End, Fail, Retire, Send, Start
from .._core.events import (
    BatchFailed,
    BatchReady,
    Closed,
    EpochBegan,
    Event,
    Pardoned,
    Sentenced,
    StreamEnded,
    WorkerExited,
    WorkerReady,
)
from .rules import BoundRules, FreeRules

if TYPE_CHECKING:
    from .._core.events import Worker
    from .world import World


class BrokenPromise(AssertionError):
    """The machine did what it must never do; the message ends with the story that led there."""


class Referee:
    def __init__(self, world: World) -> None:
        self.world, self.limits = world, world.limits
        self.rules = (BoundRules if self.limits.bound else FreeRules)(world, self.promise)
        self.event: Event | None = None
        self.lives = [0] * self.limits.seats
        self.deaths = [0] * self.limits.seats  # in a row, of a seat
        self.due = [math.inf] * self.limits.seats  # when its next life is to begin; inf: nobody is to come
        self.row = self.restarts = 0
        self.blame: dict[int, Counter[int | None]] = {}
        self.expected: Condemn | None = None
        self.tried: int | None = None  # the seat of the batch that is condemned
        self.lost: int | None = None  # the seat whose worker has just died
        self.retired: int | None = None  # the seat whose worker was let go by this event
        self.failing = self.failed = False

    def promise(self, kept: object, words: str) -> None:
        if not kept:
            story = "\n".join(self.world.machine.story.lines()[-30:])
            raise BrokenPromise(f"{words}\n{story}\nafter {self.event} with {self.limits}")

    # -- before the machine decides ------------------------------------------------------------

    def hears(self, event: Event) -> None:
        self.event, self.retired = event, None
        if isinstance(event, BatchReady) and self.world.arrived is None:
            self.row = self.deaths[event.who.seat] = 0
        elif isinstance(event, BatchFailed) and event.batch in self.world.paused:
            self.row = self.deaths[event.who.seat] = 0
            self.rules.somebody_died = True
        elif isinstance(event, Pardoned | Sentenced):
            self.blame.pop(event.batch, None)
            if isinstance(event, Pardoned) and self.tried is not None:
                self.row = self.deaths[self.tried] = 0
            if self.tried is not None and self.rules.wants(self.tried):
                self._expect_restart(self.tried)
            self.tried = None
        elif isinstance(event, EpochBegan):
            self.blame.clear()
            self.rules.condemned.clear()
            self.rules.ran_ahead = False
            for seat in event.ended:
                self.due[seat] = math.inf
        elif isinstance(event, WorkerReady):
            self.rules.fresh.discard(event.who)
        elif isinstance(event, Closed):
            self.failed = False

    def loses(self, event: WorkerExited) -> None:
        """A living worker dies; what it held is still in the world's books."""
        seat, held = event.who.seat, self.world.held_by(event.who)
        if self.world.over or (not held and not self.rules.wants(seat)):
            return
        self.lost = seat
        self.row += 1
        self.failing = self.row >= max(self.limits.crash_loop, 2 * self.limits.seats)
        self.rules.somebody_died = True
        self.deaths[seat] += 1
        if event.batch is not None and event.batch in held:
            self._suspect(event.batch, event.sample, event.hung)
        if self.expected:
            self.tried, self.lost = seat, None  # whether there is anything left for it to do is said by the answer
        else:
            self._expect_restart(seat)

    def _expect_restart(self, seat: int) -> None:
        pause = 0.0 if self.deaths[seat] <= 2 else min(5.0, 0.1 * 2.0 ** (self.deaths[seat] - 3))
        self.due[seat] = self.world.now + pause

    def _suspect(self, batch: int, sample: int | None, hung: bool) -> None:
        deaths = self.blame.setdefault(batch, Counter())
        deaths[sample] += 1
        if hung or deaths[sample] == self.limits.attempts:
            self.expected = Condemn(batch, sample, deaths[sample])
        elif deaths.total() == 3 * self.limits.attempts:
            self.expected = Condemn(batch, None, 3 * self.limits.attempts)

    # -- each decision, before it is carried out -----------------------------------------------

    def sees(self, command: Command) -> None:
        self.promise(not self.world.over or isinstance(command, (Discard, End, Fail)), f"{command} after the end")
        match command:
            case Start():
                self._sees_start(command)
            case Send():
                self._sees_send(command)
            case Draw(count):
                self.promise(not self.world.asked, "two draws at once")
                self.promise(count > 0 and not self.world.sampler_ended, "a draw for nothing")
                self.rules.sees_draw(count)
            case Deliver(batch):
                self.promise(self.world.user_waits, "delivered to nobody")
                self.promise(batch in self.world.kept, "delivered what is not there")
                self.promise(batch == self.rules.turn(), "not the batch whose turn it is")
            case Discard(batch):
                self._sees_discard(batch)
            case Condemn():
                self.promise(command == self.expected, f"{command}, but {self.expected} was due")
                self.rules.condemned.add(command.batch)
                self.expected = None
            case Retire(who):
                self._sees_retirement(who)
            case Fail():
                self._sees_fail(command)
            case End():
                self.promise(self.world.user_waits, "ended for nobody")
                self.promise(not self.failed, "a failure that looks like an end")
                if not self.world.over:
                    self.promise(not self.world.kept and not self.world.undone, "ended early")
                    self.rules.sees_end()

    def _sees_start(self, start: Start) -> None:
        seat = start.who.seat
        self.promise(self.world.process_in(seat) is None, "two processes in one seat")
        self.promise(start.who.life == self.lives[seat] + 1, "a life that is not the next one")
        self.promise(start.skip == self.rules.skip(seat), f"skip should be {self.rules.skip(seat)}")
        self.lives[seat] += 1
        if self.due[seat] < math.inf:
            self.promise(self.world.now >= self.due[seat], "restarted before its pause was over")
            self.restarts += 1
            limit = self.limits.max_restarts
            self.promise(limit is None or self.restarts <= limit, "more restarts than allowed")
        else:
            new = isinstance(self.event, EpochBegan)
            self.promise(new or self.retired == seat, "started without need")
            self.promise(self.rules.wants(seat), "started for a stream that is over")
            if new:
                self.rules.fresh.add(start.who)
        self.due[seat] = math.inf

    def _sees_send(self, send: Send) -> None:
        who, batch = send.who, send.batch
        self.promise(who in self.world.alive, "sent to a worker that is not there")
        self.promise(len(self.world.held_by(who)) < self.limits.prefetch, "sent beyond prefetch")
        self.promise(not self.world.is_retiring(who), "sent to a worker that is to be let go")
        self.promise(batch >= self.world.first, "sent a batch of an old epoch")
        self.promise(all(batch not in self.world.inbox[other] for other in self.world.alive), "loaded by two at once")
        self.rules.sees_send(who.seat, batch)

    def _sees_retirement(self, who: Worker) -> None:
        self.promise(who in self.world.alive, "let go of a worker that is not there")
        self.promise(not self.world.held_by(who), "let go of a worker that has work")
        limit, between = self.limits.recycle_after, isinstance(self.event, EpochBegan)
        spent = between and limit is not None and self.world.taken[who] >= limit
        self.promise(spent or self.world.is_retiring(who), "let go of a worker without need")
        self.retired, self.rules.somebody_died = who.seat, True

    def _sees_discard(self, batch: int) -> None:
        if self.world.arrived == batch:
            return
        self.promise(batch in self.world.kept, "discarded what is not there")
        void = isinstance(self.event, StreamEnded | Sentenced) and self.rules.is_void(batch)
        answered = isinstance(self.event, Pardoned | Sentenced) and self.world.machine.over
        finished = answered or isinstance(self.event, EpochBegan | Closed | WorkerExited)
        self.promise(void or finished, "threw away a result")

    def _sees_fail(self, fail: Fail) -> None:
        if self.failed:  # again, to whoever wants
            return
        if fail.cause == "crash loop":
            self.promise(self.failing, "gave up before its time")
        else:
            self.promise(fail.restarts == self.limits.max_restarts, "gave up with restarts left")
        self.promise(fail.restarts == self.world.machine.restarts, "a wrong number of restarts")
        self.failed = True

    # -- after all of them ---------------------------------------------------------------------

    def looks_around(self) -> None:
        world, machine = self.world, self.world.machine
        self.promise(machine.over == world.over, "not over when it should be, or over too early")
        self.promise(machine.first == world.first, "the numbers of the epoch have moved")
        if isinstance(self.event, EpochBegan):
            self.promise(world.first >= world.used, "an epoch begins with used numbers")
        self.promise(world.arrived is None, "a result leaked")
        self.promise(machine.kept == len(world.kept), "a result leaked, or was counted twice")
        self.promise(not self.expected, f"{self.expected} was due")
        self.promise(not self.failing or world.over, "a crash loop goes on")
        if world.over:
            self.promise(not world.kept, "results leak at the end")
            self.promise(not world.user_waits, "the user waits after the end")
            return
        self.promise(all(batch >= world.first for batch in world.kept), "a result of an old epoch is kept")
        self._restarts_are_under_way()
        self._nobody_waits_for_nobody()
        self._nobody_stays_beyond_the_time()
        self.rules.looks_around()

    def _restarts_are_under_way(self) -> None:
        if self.lost is not None and not self.rules.wants(self.lost):
            self.due[self.lost] = math.inf  # the others do the rest
        self.lost = None
        deadline = self.world.machine.next_deadline()
        self.promise(deadline > self.world.now, "a deadline that has passed already")
        for due in self.due:
            self.promise(due > self.world.now, "a seat stays empty though its pause is over")
            self.promise(deadline <= due, "nobody will wake us to start a worker")

    def _nobody_stays_beyond_the_time(self) -> None:
        tired = [who for who in self.world.alive if self.world.is_retiring(who) and not self.world.held_by(who)]
        self.promise(not tired, f"{tired} are not replaced")
        deadline = self.world.machine.next_deadline()
        for _, again_at in self.world.paused.values():
            late = again_at <= self.world.now
            self.promise(late or deadline <= again_at, "nobody will wake us to try again")

    def _nobody_waits_for_nobody(self) -> None:
        world, machine = self.world, self.world.machine
        owed = machine.waiting_on()
        truth = ["the sampler"] if world.asked else []
        truth += [] if world.on_trial is None else [f"a decision on batch {world.on_trial}"]
        truth += [f"worker {who.seat} to be ready" for who in world.starting]
        truth += [f"batch {held[0]} from worker {who.seat}" for who in world.alive if (held := world.held_by(who))]
        paused = [batch for batch, (_, again_at) in world.paused.items() if again_at > world.now]
        waits = [words for words in owed if "to be tried again" in words]
        self.promise(sorted(int(words.split()[1]) for words in waits) == sorted(paused), f"{waits}, in truth {paused}")
        truth += waits
        pauses = [words for words in owed if "to be started again" in words]
        self.promise(sorted(set(owed) - set(pauses)) == sorted(truth), f"waits for {owed}, in truth {truth}")
        self.promise(len(pauses) == sum(due < math.inf for due in self.due), f"pauses: {pauses}, in truth {self.due}")
        if world.user_waits:
            self.promise(owed, "the user waits for nobody")
            self.promise(truth or machine.next_deadline() < math.inf, "the user waits for a time that never comes")
            self.promise(self.rules.turn() not in world.kept, "the user waits for what is there")
