"""A world for the machine to live in: it plays the sampler, the workers, the clock and the user.

Nothing here is a process and nothing waits, so a worker's whole life takes microseconds. Every answer of the machine is
watched by a ``Referee``. One world, two drivers: ``walk`` (a seed, fast, goes far) and Hypothesis (small, shrinks a
failure to its shortest story). A driver picks one of ``moves()`` at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from random import Random

from .._core.commands import Command, Condemn, Deliver, Discard, Draw, End, Fail, Retire, Send, Start
from .._core.events import (
    BatchFailed,
    BatchReady,
    Closed,
    Drawn,
    EpochBegan,
    Event,
    Outgrown,
    Pardoned,
    SamplerEnded,
    Sentenced,
    StreamEnded,
    Ticked,
    Wanted,
    Worker,
    WorkerExited,
    WorkerReady,
)
from .._core.machine import Limits, Machine
from .epochs import Epoch, some_epoch
from .referee import Referee

Move = Callable[[Random], None]


class World:
    """What is really so, as opposed to what the machine believes.

    ``prompt``: the sampler answers at once, as the engine's does; otherwise anything may happen before it does.
    ``deadly``: how often workers die, beside 10 for a batch that is loaded; ``samples``: on how many different ones.
    ``brisk``: how soon workers get ready, on the same scale.
    ``longest``: the length of a long epoch, in batches.
    ``benign``: nobody dies, nobody closes, no epoch is cut short: the machine must then come to its end.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        prompt: bool = True,
        deadly: float = 0.7,
        samples: int = 2,
        brisk: float = 6,
        longest: int = 30,
    ) -> None:
        self.limits, self.machine, self.now = limits, Machine(limits), 0.0
        self.prompt, self.deadly, self.samples, self.brisk, self.longest = prompt, deadly, samples, brisk, longest
        self.benign = False
        # Processes
        self.starting: list[Worker] = []
        self.alive: list[Worker] = []
        self.inbox: dict[Worker, list[int]] = {}
        self.busy_since: dict[Worker, float] = {}
        self.dead: list[Worker] = []
        self.last_words: list[tuple[Worker, int]] = []  # results on their way when their worker died
        self.completed = 0
        self.wanted_at = 0.0  # when the user last began to wait
        # The epoch
        self.epochs = 0
        self.first = self.used = 0  # number of its first batch; the lowest number never used
        self.epoch, self.slow = Epoch(0, (0,) * limits.seats, EpochBegan()), 0
        self.to_give: list[int] = []  # free: all of this epoch that no earlier run has given
        self.asked = self.drawn = 0
        self.sampler_ended = self.user_waits = self.ended = self.over = False
        self.undone: set[int] = set()  # to be loaded: drawn (free), asked for (bound)
        self.kept: dict[int, int] = {}  # results in the hands of the machine, in order of completion
        self.given: list[int] = []
        self.asked_of = [0] * limits.seats  # bound: how many batches of its stream each seat was asked for
        self.cut: dict[int, int] = {}  # seat -> how many batches its stream has, as nobody gets beyond them
        self.void: dict[int, int] = {}  # seat -> number of the first batch its stream does not have
        self.paused: dict[int, tuple[float, float]] = {}  # failed: since when, and when it may be tried again
        self.on_trial: int | None = None  # condemned, and not yet answered
        self.taken: dict[Worker, int] = {}  # batches that each life was sent
        self.outgrown: set[Worker] = set()
        self.arrived: int | None = None  # the result that the present event brought
        self.referee = Referee(self)

    @property
    def epoch_is_settled(self) -> bool:
        return self.ended or self.over

    def seat_of(self, batch: int) -> int:
        return (batch - self.first) % self.limits.seats

    def held_by(self, who: Worker) -> list[int]:
        """What this worker was sent, has not returned, and still should."""
        return [batch for batch in self.inbox.get(who, ()) if batch in self.undone]

    def is_retiring(self, who: Worker) -> bool:
        limit = self.limits.recycle_after
        spent = limit is not None and not self.limits.bound and self.taken[who] >= limit
        return spent or who in self.outgrown

    def process_in(self, seat: int) -> Worker | None:
        return next((who for who in self.starting + self.alive if who.seat == seat), None)

    # -- the machine is told, and obeyed -------------------------------------------------------

    def happens(self, event: Event) -> None:
        self.referee.hears(event)
        commands = self.machine.handle(event, self.now)
        if isinstance(event, EpochBegan):
            self._is_numbered()
        for command in commands:
            self.referee.sees(command)
            self.carry_out(command)
        self.referee.looks_around()

    def carry_out(self, command: Command) -> None:
        match command:
            case Start(who, _):
                self.starting.append(who)
                self.inbox[who], self.taken[who] = [], 0
            case Send(who, batch):
                if not self.held_by(who):
                    self.busy_since[who] = self.now
                self.inbox[who].append(batch)
                self.taken[who] += 1
                self.paused.pop(batch, None)
                if self.limits.bound:
                    self._asks_for(batch)
            case Draw(count):
                self.asked = count
            case Deliver(batch):
                self.given.append(batch)
                del self.kept[batch]
                self.user_waits = False
            case Discard(batch):
                if self.arrived == batch:
                    self.arrived = None
                else:
                    del self.kept[batch]
            case Condemn(batch):
                self.on_trial = batch
            case Retire(who):
                self.alive.remove(who)
                self._ends(who)
            case Fail():
                self.over, self.user_waits = True, False
            case End():
                self.ended, self.user_waits = True, False

    def _busy(self) -> list[Worker]:
        return [who for who in self.alive if self.inbox[who]]

    def _asks_for(self, batch: int) -> None:
        seat, place = self.seat_of(batch), (batch - self.first) // self.limits.seats
        self.asked_of[seat] = max(self.asked_of[seat], place + 1)
        self.used = max(self.used, batch + 1)
        self.undone.add(batch)

    # -- what can happen next ------------------------------------------------------------------

    def moves(self) -> Iterator[tuple[float, Move]]:
        """Every move that is possible now, with its weight."""
        yield 1.5, self.time_passes
        if self.asked:
            yield (1000 if self.prompt else 8), self.sampler_answers
        if self.starting:
            yield self.brisk, self.gets_ready
        if self._busy():
            yield 10, self.finishes
        if not self.user_waits and not self.epoch_is_settled and self.epochs:
            yield 8, self.wants
        if self.last_words:
            yield 2, self.speaks_late
        if not self.benign:
            yield from self.mishaps()

    def mishaps(self) -> Iterator[tuple[float, Move]]:
        if self._busy():
            yield self.deadly, self.dies_at_work
            yield 0.5, self.fails
        if self.alive:
            yield 0.1, self.outgrows
        if self.starting or self.alive:
            yield 0.3, self.dies_anywhere
        if self.dead:
            yield 0.3, self.is_mistaken_for_alive
        if self.epoch_is_settled:
            yield 0.3, self.wants
        if not self.asked and not self.over:
            yield (3 if self.ended or not self.epochs else 0.03), self.begins
        if self.epochs > 1 or self.ended:
            yield 0.03, self.closes

    def begins(self, rng: Random) -> None:
        self.epochs += 1
        self.epoch, self.slow = some_epoch(rng, self.limits, self.longest), rng.randrange(self.limits.seats)
        self.drawn, self.asked_of = self.epoch.drawn, [self.epoch.given(seat) for seat in range(self.limits.seats)]
        self.sampler_ended = self.user_waits = self.ended = False
        self.undone.clear()
        self.given.clear()
        self.void.clear()
        self.cut.clear()
        self.paused.clear()
        self.happens(self.epoch.began)

    def _is_numbered(self) -> None:
        """The machine has said which number the epoch begins with."""
        self.first = self.machine.first
        self.to_give = [] if self.limits.bound else [self.first + batch for batch in self.epoch.left]
        for seat in self.epoch.began.ended:
            self.void[seat] = self.first + seat + self.limits.seats * self.epoch.given(seat)

    def sampler_answers(self, rng: Random) -> None:
        left = self.epoch.length - self.drawn
        count = min(left, self.asked if rng.random() < 0.8 else rng.randint(1, self.asked))
        short, self.asked = count < self.asked, 0
        if count:
            self.drawn += count
            if not self.limits.bound:
                self.used = self.first + self.drawn
                self.undone |= set(range(self.used - count, self.used)).intersection(self.to_give)
            self.happens(Drawn(count))
        if count == left and (short or not count) and not self.over:
            self.sampler_ended, self.asked = True, 0
            self.happens(SamplerEnded())

    def gets_ready(self, rng: Random) -> None:
        who = rng.choice(self.starting)
        self.starting.remove(who)
        self.alive.append(who)
        self.happens(WorkerReady(who))

    def finishes(self, rng: Random) -> None:
        busy = self._busy()
        who = rng.choice([who for who in busy if who.seat != self.slow or rng.random() < 0.1] or busy)
        batch = self.inbox[who].pop(0)
        current = batch in self.undone
        if current and self.limits.bound and (batch - self.first) // self.limits.seats >= self.epoch.streams[who.seat]:
            self.undone -= set(self.held_by(who)) | {batch}
            self.inbox[who].clear()
            self.void[who.seat] = batch
            self.happens(StreamEnded(who, batch))
            return
        size = rng.randint(0, 100)
        if current:
            self.completed += 1
            self.busy_since[who] = self.now
        self._arrives(who, batch, size, current and not self.over)

    def fails(self, rng: Random) -> None:
        who = rng.choice(self._busy())
        if self.limits.bound:
            return
        batch, again_at = self.inbox[who].pop(0), self.now + rng.choice([0.0, 0.002, 0.5])
        if batch in self.undone:
            self.busy_since[who] = self.now
            self.paused[batch] = self.now, again_at
        self.happens(BatchFailed(who, batch, again_at))

    def outgrows(self, rng: Random) -> None:
        who = rng.choice(self.alive)
        if not self.limits.bound:
            self.outgrown.add(who)
        self.happens(Outgrown(who))

    def speaks_late(self, rng: Random) -> None:
        who, batch = self.last_words.pop(rng.randrange(len(self.last_words)))
        self._arrives(who, batch, size=1, welcome=False)

    def _arrives(self, who: Worker, batch: int, size: int, welcome: bool) -> None:
        if welcome:
            self.undone.remove(batch)
            self.kept[batch] = size
        else:
            self.arrived = batch
        self.happens(BatchReady(who, batch, size))

    def dies_at_work(self, rng: Random) -> None:
        self._dies(rng.choice(self._busy()), rng)

    def dies_anywhere(self, rng: Random) -> None:
        self._dies(rng.choice(self.starting + self.alive), rng)

    def _dies(self, who: Worker, rng: Random) -> None:
        (self.starting if who in self.starting else self.alive).remove(who)
        self.dead.append(who)
        suspects = self.inbox[who][: 1 if rng.random() < 0.7 else None]  # it may have got further than we heard
        batch = rng.choice(suspects) if suspects and rng.random() < 0.9 else None
        known = batch is not None and rng.random() < 0.9
        event = WorkerExited(who, batch, rng.randrange(self.samples) if known else None, hung=rng.random() < 0.05)
        self.referee.loses(event)
        self._ends(who)
        self.happens(event)
        if self.on_trial is not None and not self.over:
            self._is_judged(self.on_trial, rng)

    def _ends(self, who: Worker) -> None:
        self.last_words += [(who, batch) for batch in self.inbox.pop(who)]
        self.outgrown.discard(who)

    def _is_judged(self, batch: int, rng: Random) -> None:
        """As the engine does it: at once."""
        self.on_trial, bound = None, self.limits.bound
        if rng.random() < 0.3:
            again_at = self.now + rng.choice([0.0, 0.5])
            if not bound:
                self.paused[batch] = self.now, again_at
            self.happens(Pardoned(batch, again_at))
            return
        self.undone.remove(batch)
        self.kept[batch] = 0
        if bound:
            self._is_cut(self.seat_of(batch), batch + 1)
        self.happens(Sentenced(batch))

    def _is_cut(self, seat: int, end: int) -> None:
        """The stream of this seat cannot be read from this number on."""
        self.void[seat] = end
        self.cut[seat] = len(range(self.first + seat, end, self.limits.seats))
        self.undone -= {batch for batch in self.undone if batch >= end and self.seat_of(batch) == seat}

    def is_mistaken_for_alive(self, rng: Random) -> None:
        who = rng.choice(self.dead)
        events: list[Event] = [WorkerReady(who), WorkerExited(who, self.first, 0), StreamEnded(who, self.first)]
        self.happens(rng.choice(events))

    def wants(self, rng: Random) -> None:
        self.user_waits, self.wanted_at = True, self.now
        self.happens(Wanted())

    def time_passes(self, rng: Random) -> None:
        due = self.machine.next_deadline()
        if due < math.inf and (self.benign or rng.random() < 0.5):
            self.now = max(self.now, due)
        else:
            self.now += rng.choice([0.0005, 0.003, 0.06, 1.0])
        self.happens(Ticked())

    def closes(self, rng: Random) -> None:
        self.over, self.user_waits, self.asked = True, False, 0
        self.happens(Closed())
