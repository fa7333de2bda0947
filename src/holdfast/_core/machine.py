"""The loader's state machine: events in, commands out.

Every event is taken in by one small method; what follows from it is decided in one place for all of them (``_settle``):
give what is due, send what is pending, draw what there is room for. So no event can forget a consequence.
"""

from __future__ import annotations

import math

from .bound import Bound
from .budget import Budget, pause
from .commands import Cause, Command, Deliver, Discard, Draw, End, Fail, Retire
from .events import (
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
from .free import Free
from .limits import Limits
from .pace import Pace
from .seats import Phase, Seat
from .story import Story
from .suspects import Suspects

__all__ = ["Limits", "Machine"]

ROUTINE = frozenset({Wanted, Drawn, BatchReady, Ticked})
TOLD = 20  # values that the story keeps of them for each batch that may be under way: of about two


class Machine:
    """Decides; never acts. ``handle`` is the only way in."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.seats = [Seat(number) for number in range(limits.seats)]
        self.pace = Pace()
        self.schedule = (Bound if limits.bound else Free)(limits, self.seats, self.pace)
        self.shelf = self.schedule.shelf
        self.suspects = Suspects(limits.attempts)
        self.budget = Budget(limits)
        self.story: Story[Event, Command] = Story(ROUTINE, length=max(64, TOLD * limits.window))
        self.now = 0.0
        self.wanted = False
        self.drawing = False
        self.on_trial: tuple[int, Seat] | None = None  # a batch that is condemned, its seat, and no answer yet
        self.restart_at = math.inf  # the earliest of the seats'
        self.failure: Fail | None = None
        self.over = False

    @property
    def first(self) -> int:
        """Number of the first batch of this epoch; numbers go on through epochs."""
        return self.schedule.first

    @property
    def restarts(self) -> int:
        return self.budget.restarts

    @property
    def kept(self) -> int:
        """Results that were taken in and are neither delivered nor discarded."""
        return len(self.shelf.done)

    def expects(self, who: Worker, batch: int) -> bool:
        """Whether this worker is to load this batch."""
        seat = self.seats[who.seat]
        return who.life == seat.life and batch in seat.held

    def handle(self, event: Event, now: float) -> list[Command]:
        """Take in one event and return what to do about it, in order."""
        self.now = now
        commands: list[Command] = []
        if self.over:
            self._after_the_end(event, commands)
        else:
            self._take_in(event, now, commands)
            if not self.over:
                self._settle(now, commands)
        self.story.tell(now, event, commands)
        return commands

    def next_deadline(self) -> float:
        """When the engine must wake even if nothing happens; ``inf`` for never."""
        if self.over:
            return math.inf
        soonest = min(self.restart_at, self.schedule.again_at)
        if self.drawing or self.schedule.sampler_ended:
            return soonest
        return min(soonest, self.schedule.run_ahead_at())

    def waiting_on(self) -> list[str]:
        """Who owes us an event. Empty while the user waits means a deadlock, and a bug."""
        if self.over:
            return []
        owed = [words for seat in self.seats if (words := seat.owes(self.now))]
        owed += self.schedule.pauses(self.now)
        if self.on_trial is not None:
            owed.append(f"a decision on batch {self.on_trial[0]}")
        return ["the sampler", *owed] if self.drawing else owed

    # -- one method per event ------------------------------------------------------------------

    def _take_in(self, event: Event, now: float, commands: list[Command]) -> None:
        match event:  # the three of every batch come first
            case Wanted():
                self.wanted = True
                self.schedule.wanted_at = now
            case Drawn():
                self.drawing = False
                self.schedule.draw(event.count)
            case BatchReady():
                self._on_batch(event, now, commands)
            case Ticked():
                pass
            case BatchFailed():
                self._on_failure(event, now, commands)
            case WorkerReady():
                self._on_ready(event.who, now, commands)
            case WorkerExited():
                self._on_exit(event, now, commands)
            case Pardoned() | Sentenced():
                self._on_answer(event, now, commands)
            case Outgrown():
                self._on_growth(event.who, commands)
            case StreamEnded():
                self._on_stream_end(event, commands)
            case SamplerEnded():
                self.drawing = False
                self.schedule.end_sampler()
            case EpochBegan():
                self._on_epoch(event, commands)
            case Closed():
                self._finish(commands)

    def _on_batch(self, event: BatchReady, now: float, commands: list[Command]) -> None:
        batch, seat = event.batch, self.seats[event.who.seat]
        if event.who.life != seat.life or batch not in seat.held:  # `expects`, written out
            commands.append(Discard(batch))  # from a life or an epoch that has ended: loaded again, or not missed
            return
        self.pace.observe(now - seat.since)
        self.shelf.put(batch, event.size)
        self._let_go(seat, batch, now, commands)

    def _on_failure(self, event: BatchFailed, now: float, commands: list[Command]) -> None:
        batch, seat = event.batch, self.seats[event.who.seat]
        if event.who.life == seat.life and batch in seat.held and isinstance(self.schedule, Free):
            self.schedule.pause(batch, now, event.again_at)
            self._let_go(seat, batch, now, commands)

    def _let_go(self, seat: Seat, batch: int, now: float, commands: list[Command]) -> None:
        """The worker has answered: it lives, and this batch is off its hands."""
        seat.held.remove(batch)
        seat.since = now
        seat.deaths = self.budget.row = 0
        if seat.phase is Phase.RETIRING and not seat.held:
            self._retire(seat, commands)

    def _on_ready(self, who: Worker, now: float, commands: list[Command]) -> None:
        seat = self.seats[who.seat]
        if who.life == seat.life and seat.phase is Phase.STARTING:
            seat.phase = Phase.READY
            self.schedule.resume(seat, now, commands)

    def _on_exit(self, event: WorkerExited, now: float, commands: list[Command]) -> None:
        seat = self.seats[event.who.seat]
        if event.who.life != seat.life:
            return
        seat.vacate()
        if not seat.held and not self.schedule.wants(seat):
            return  # it has done its part: no death
        seat.deaths += 1
        self.budget.row += 1
        self.budget.deaths += 1
        self._blame(seat, event, commands)
        if self.budget.looping():
            self._fail("crash loop", commands)
            return
        self.schedule.lose(seat)
        self.schedule.assign(now, commands)  # first to the others: this seat is needed only for what is left
        if self.on_trial is None:  # else the answer says whether there is anything left to do
            self._replace_if_wanted(seat, now, commands)

    def _on_answer(self, event: Pardoned | Sentenced, now: float, commands: list[Command]) -> None:
        if self.on_trial is None or self.on_trial[0] != event.batch:
            return
        (batch, seat), self.on_trial = self.on_trial, None
        if isinstance(event, Pardoned):
            seat.deaths = self.budget.row = 0  # somebody knows what to do about these deaths: it is no crash loop
            self.suspects.forget(batch)
            self.schedule.pardon(batch, now, event.again_at)
        else:
            commands += [Discard(result) for result in self.schedule.condemn(batch)]
        self._replace_if_wanted(seat, now, commands)

    def _on_growth(self, who: Worker, commands: list[Command]) -> None:
        seat = self.seats[who.seat]
        if who.life == seat.life and seat.phase is Phase.READY and not self.limits.bound:
            seat.phase = Phase.RETIRING
            if not seat.held:
                self._retire(seat, commands)

    def _on_stream_end(self, event: StreamEnded, commands: list[Command]) -> None:
        seat = self.seats[event.who.seat]
        if event.who.life == seat.life and event.batch in seat.held and isinstance(self.schedule, Bound):
            commands += [Discard(batch) for batch in self.schedule.end_stream(seat, event.batch)]

    def _on_epoch(self, event: EpochBegan, commands: list[Command]) -> None:
        self.wanted = self.drawing = False
        self.on_trial = None
        self.suspects.clear()
        commands += [Discard(batch) for batch in self.schedule.begin(event)]
        for seat in self.seats:
            if self._is_tired(seat):
                commands.append(Retire(seat.who))
                seat.vacate()
            if not self.schedule.wants(seat):
                seat.restart_at = math.inf  # an earlier run has given all of its stream: nobody is to come
            elif seat.phase is Phase.EMPTY and seat.restart_at == math.inf:
                commands.append(seat.start(self.schedule.skip(seat), fresh=True))
        self.restart_at = min(seat.restart_at for seat in self.seats)

    def _after_the_end(self, event: Event, commands: list[Command]) -> None:
        match event:
            case BatchReady():
                commands.append(Discard(event.batch))
            case Wanted():
                commands.append(self.failure or End())
            case Closed():
                self.failure = None
            case _:
                pass

    # -- small decisions -----------------------------------------------------------------------

    def _settle(self, now: float, commands: list[Command]) -> None:
        """Whatever has happened: give, send, draw, and start whose pause is over."""
        if self.wanted:
            self._give(commands)
        if now >= self.schedule.again_at:
            self.schedule.wake(now)
        self.schedule.assign(now, commands)
        if self.wanted and self.schedule.sampler_ended:
            self._give(commands)  # to assign the last of it may end streams, and so make way for what waits
        if now >= self.restart_at:
            self._start_due(now, commands)
        if not self.drawing and not self.schedule.sampler_ended:
            count = self.schedule.room(now)
            if count > 0:
                self.drawing = True
                commands.append(Draw(count))

    def _give(self, commands: list[Command]) -> None:
        batch = self.shelf.take()
        if batch is not None:
            self.wanted = False
            commands.append(Deliver(batch))
        elif self.schedule.exhausted():
            self.wanted = False
            commands.append(End())

    def _blame(self, seat: Seat, event: WorkerExited, commands: list[Command]) -> None:
        if event.batch is None or event.batch not in seat.held:
            return
        sentence = self.suspects.blame(event.batch, event.sample, certain=event.hung)
        if sentence:
            seat.held.remove(event.batch)
            self.on_trial = event.batch, seat
            commands.append(sentence)

    def _is_tired(self, seat: Seat) -> bool:
        limit = self.limits.recycle_after
        spent = seat.phase is Phase.READY and limit is not None and seat.taken >= limit
        return spent or seat.phase is Phase.RETIRING

    def _retire(self, seat: Seat, commands: list[Command]) -> None:
        """At the edge of a batch: nothing is on its hands."""
        commands.append(Retire(seat.who))
        seat.vacate()
        if self.schedule.wants(seat):
            commands.append(seat.start(skip=0, fresh=False))

    def _replace_if_wanted(self, seat: Seat, now: float, commands: list[Command]) -> None:
        if self.schedule.wants(seat):
            self._replace(seat, now, commands)

    def _replace(self, seat: Seat, now: float, commands: list[Command]) -> None:
        cause = self.budget.spend()
        if cause:
            self._fail(cause, commands)
            return
        seat.restart_at = now + pause(seat.deaths)
        self.restart_at = min(self.restart_at, seat.restart_at)

    def _start_due(self, now: float, commands: list[Command]) -> None:
        for seat in self.seats:
            if seat.restart_at <= now:
                commands.append(seat.start(self.schedule.skip(seat), fresh=False))
        self.restart_at = min(seat.restart_at for seat in self.seats)

    def _fail(self, cause: Cause, commands: list[Command]) -> None:
        self._finish(commands)
        self.failure = Fail(cause, self.budget.restarts)
        commands.append(self.failure)

    def _finish(self, commands: list[Command]) -> None:
        self.over = True
        self.wanted = self.drawing = False
        commands += [Discard(batch) for batch in self.shelf.clear()]
