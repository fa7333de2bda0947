"""The crew: carries out what the machine decides, and tells it what happens.

Runs only inside the user's ``next()``: there is no thread. An interrupt that arrives while the crew waits leaves
everything as it was; one that arrives anywhere else leaves the crew in an unknown state, and it is closed.
"""

from __future__ import annotations

import math
import os
import time
from typing import Any

from typing_extensions import assert_never

from holdfast._core.commands import Command, Condemn, Deliver, Discard, Draw, End, Fail, Retire, Send, Start
from holdfast._core.events import (
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
from holdfast._core.machine import Limits, Machine
from holdfast._system.process import Process
from holdfast._transport import messages
from holdfast._transport.messages import Begin, Loaded, Mark, Message
from holdfast._worker.attributes import UNCHANGED, Changes
from holdfast.errors import RestartsSpent

from . import leaving
from .berth import Berth
from .draws import Draws
from .flow import Flow
from .inquest import Inquest
from .judge import Judge, Ruling, Whose
from .launchers import Launcher
from .notices import Ear
from .prompts import Prompts
from .results import ByReference, Error, InArena, Result, Results
from .roster import Exited, Roster
from .tally import Tally
from .trail import Trail
from .watch import Watch

_WANTED, _TICKED = Wanted(), Ticked()


class Crew:
    """Owns the launcher and the roster. Made for one loader, used by one thread at a time."""

    def __init__(self, limits: Limits, launcher: Launcher, judge: Judge, watch: Watch, ear: Ear, tally: Tally) -> None:
        self._machine = Machine(limits)
        self.story = self._machine.story  # the last events and decisions
        self._launcher, self._judge, self._watch, self._ear = launcher, judge, watch, ear
        self._tally, self._restarts_before = tally, tally.restarts
        self._roster, self._bound = Roster(), limits.bound
        self._draws = Draws(iter(()).__next__)
        self._inquest, self._results = Inquest(judge, self._machine, processes=launcher.processes), Results()
        self._prompts = Prompts(self._roster, self._inquest.doing, self._inquest.again)
        self._flow = Flow(self._machine, judge.streams)
        self._epoch = Begin(0, 0, None)
        self._outcome: Result | None = None
        self._due: int | None = None  # the batch whose outcome it is
        self._owner, self.closed = os.getpid(), False
        leaving.close_at_exit(self)

    @property
    def restarts(self) -> int:
        return self._machine.restarts

    @property
    def processes(self) -> list[Process]:
        return self._roster.processes

    def begin(self, epoch: Begin, draws: Draws, trail: Trail | None, changes: Changes = UNCHANGED) -> None:
        """An epoch, or the rest of one: of batches that ``draws`` gives, or of streams where there is a ``trail``."""
        self._draws, self._outcome, self._due = draws, None, None
        self._flow.begin(trail)
        try:
            start, done = draws.position if trail is None else (0, frozenset())
            event = EpochBegan(start, done, self._flow.given, self._flow.ended)
            commands = self._machine.handle(event, time.monotonic())
            self._epoch = epoch._replace(first=self._machine.first, changes=changes.all)
            self._inquest.begin(draws)
            self._watch.begin(self._machine.now)
            for who, _ in self._roster.items():
                past = self._flow.past(who.seat)
                self._roster.tell(who, self._epoch._replace(changes=changes.new, past=past))
            self._carry_out(commands)
        except BaseException:
            self.close()
            raise

    def next(self, timeout: float) -> Any:
        """The next batch, or its error; ``StopIteration`` when the epoch is over."""
        self._roster.asked()
        deadline = time.monotonic() + timeout - self._prompts.seconds if timeout else math.inf
        if self._outcome is None:  # an interrupt may have come when it was there, and not yet handed over
            self._go_on(_WANTED)
        while (outcome := self._outcome) is None:
            until = min(deadline + self._prompts.seconds, self._machine.next_deadline(), self._watch.next_look)
            if ready := self._prompts.wait(until):
                self._go_on(ready)
            elif time.monotonic() < deadline + self._prompts.seconds:
                self._go_on(_TICKED)
            else:
                raise self._inquest.late(timeout, self._watch, self._roster.items())
        value: Any = outcome.error if (is_error := isinstance(outcome, Error)) else outcome.value()
        self._hand_over(is_error)
        del outcome
        if not is_error:
            return value
        try:
            raise value
        finally:
            del value  # its traceback holds this frame, and the frame of the iterator, whose death must close us

    def _hand_over(self, is_error: bool) -> None:
        """Only now, when nothing stands between it and the user, is a batch delivered: an interrupt may have come."""
        batch, self._outcome, self._due = self._due, None, None
        self._roster.handed_over()
        if batch is not None and self._bound:
            self._flow.deliver(batch, self._draws.places)
        elif batch is not None:
            number = batch - self._epoch.first
            self._judge.deliver(number, self._draws.deliver(number), is_error=is_error)

    def settle(self) -> None:
        """Until it is known of every stream where it began, or that this cannot be known."""
        while not (self._flow.begun or self.closed or self._outcome):
            until = min(self._machine.next_deadline(), self._watch.next_look)
            self._go_on(self._prompts.wait(until) or _TICKED)

    def rest(self, seconds: float) -> bool:
        """Whether all of them have done, within this time, what they have on their hands of an epoch that was left."""
        deadline = time.monotonic() + seconds
        while self._machine.waiting_on():
            ready = self._roster.wait(deadline - time.monotonic())
            if not ready:
                return False
            self._go_on(ready)
        return not self.closed

    def close(self) -> None:
        """End all workers, now. Harmless when done before, and in a fork of the process that owns them."""
        if self.closed:
            return
        self.closed = True
        leaving.closed(self)
        self._machine.handle(Closed(), time.monotonic())
        if os.getpid() == self._owner:
            self._roster.close()
            self._launcher.close()
        else:
            self._roster.abandon()
        self._results.clear()
        self._draws = Draws(iter(()).__next__)

    # -- what happens --------------------------------------------------------------------------

    def _go_on(self, with_what: Event | list[int]) -> None:
        """An event of our own, or descriptors on which something happened."""
        try:
            if isinstance(with_what, list):
                self._listen(with_what)
            else:
                self._feed(with_what)
            if self._machine.now >= self._watch.next_look:
                self._look_for_stalls()
        except BaseException:
            self.close()
            raise

    def _listen(self, ready: list[int], spoke: set[Worker] | None = None) -> None:
        """Take in what happened, and who it was that ``spoke``, if anybody asks."""
        for fd in ready:
            for who, message in self._roster.hear(fd):
                self._on_message(who, message)
                if spoke is not None:
                    spoke.add(who)

    def _on_message(self, who: Worker, message: Message | Exited) -> None:
        match message:
            case Loaded():
                self._on_result(who, message.batch, InArena(self._roster[who], message), message.mark)
            case messages.Handed():
                self._on_result(who, message.batch, ByReference(message.value), message.mark)
            case messages.Began():
                self._flow.began(who, message)
            case messages.Noticed():
                self._ear.hear(who.seat, message)
            case messages.Extended():
                self._roster[who].arena.extended(message.base, message.size)
            case messages.Raised():
                self._on_failure(who, message)
            case messages.Asked():
                self._on_question(who, message)
            case messages.StreamOver():
                self._flow.over(who, message)
                self._feed(StreamEnded(who, message.batch))
            case messages.Ready():
                self._feed(WorkerReady(who))
            case Exited():
                self._on_exit(who, message.berth)
            case messages.InitFailed():
                self._on_init_failure(who, message)
            case _:
                self._prompts.hear(who, message)

    def _on_result(self, who: Worker, batch: int, result: Result, mark: Mark | None) -> None:
        if self._bound:
            self._flow.answered(who, batch, mark)
        self._results.announce(batch, result)
        self._feed(BatchReady(who, batch, result.size))
        self._results.settle()
        if self._watch.memory and self._roster.memory_of(who) > self._watch.memory:
            self._feed(Outgrown(who))

    def _on_failure(self, who: Worker, message: messages.Raised) -> None:
        if not self._machine.expects(who, message.batch):
            return  # of an epoch that is over
        batch, whose = message.batch - self._epoch.first, self._whose(who)
        if self._bound:
            ruling = Ruling(self._flow.failed(message, whose))
        else:
            ruling = self._judge.failed(batch, self._index_of(message.batch), message.reports, whose)
        if ruling.error is not None:
            self._on_result(who, message.batch, Error(ruling.error), message.mark)
        else:
            self._feed(BatchFailed(who, message.batch, time.monotonic() + ruling.after))

    def _on_question(self, who: Worker, message: messages.Asked) -> None:
        if (answer := self._flow.asked(who, message, self._whose(who))) is not None:
            self._roster.tell(who, answer)

    def _on_exit(self, who: Worker, berth: Berth) -> None:
        event = self._inquest.hold(who, berth)
        if event is not None:
            self._feed(event)
            self._inquest.close(who)

    def _on_init_failure(self, who: Worker, message: messages.InitFailed) -> None:
        self._end_with(self._judge.unready(message.error, self._whose(who)))

    # -- silence -------------------------------------------------------------------------------

    def _look_for_stalls(self) -> None:
        spoke: set[Worker] = set()
        self._listen(self._roster.wait(0), spoke)  # what came while the user was away: that is no stall
        silent_ones = [(who, berth) for who, berth in self._roster.items() if who not in spoke]
        for silent, ruling in self._inquest.look(self._watch, silent_ones):
            if silent.batch is None and ruling.error is not None:
                self._end_with(ruling.error)
                return
            if not ruling.held:
                self._roster.let_go(silent.who)  # and not wait for it: it may be beyond being killed
                self._feed(WorkerExited(silent.who, silent.batch, silent.sample, hung=True))
                self._inquest.close(silent.who)

    # -- what to do about it -------------------------------------------------------------------

    def _feed(self, event: Event) -> None:
        self._carry_out(self._machine.handle(event, time.monotonic()))

    def _carry_out(self, commands: list[Command]) -> None:
        draw, trial = 0, None
        for command in commands:
            match command:
                case Deliver():
                    self._due, self._outcome = command.batch, self._results.take(command.batch)
                case Send():
                    self._send(command.who, command.batch)
                case Draw():
                    draw = command.count
                case Discard():
                    self._results.take(command.batch).discard()
                case Start():
                    self._start(command.who, command.skip)
                case Condemn():
                    trial = command
                case Retire():
                    self._roster.retire(command.who)
                case Fail():
                    self._fail(command)
                case End():
                    self._end()
                case _:
                    assert_never(command)
        if trial is not None:
            self._try(trial)
        if draw and not self.closed:
            self._draw_batches(draw)

    def _send(self, who: Worker, batch: int) -> None:
        index = self._index_of(batch)
        if not self._bound:
            index = self._judge.plan(batch - self._epoch.first, index)
        self._roster.tell(who, messages.Load(batch, index, self._roster[who].arena.returned()))

    def _index_of(self, batch: int) -> Any:
        return self._draws.places if self._bound else self._draws.indices.get(batch - self._epoch.first)

    def _draw_batches(self, count: int) -> None:
        drawn, ended = self._draws.take(count, self._draws.forget_all_but if self._bound else self._judge.draw)
        if drawn:
            self._feed(Drawn(drawn))
        if ended:
            self._feed(SamplerEnded())

    def _start(self, who: Worker, skip: int) -> None:
        berth = self._launcher.launch(who.seat)
        self._roster.add(who, berth)
        self._roster.tell(who, self._epoch._replace(past=self._flow.past(who.seat, skip)))
        self._tally.restarts = self._restarts_before + self._machine.restarts

    def _try(self, command: Condemn) -> None:
        ruling = self._inquest.sentence(command)
        if ruling.error is not None:
            self._results.keep(command.batch, Error(ruling.error))
            self._feed(Sentenced(command.batch))
        else:
            self._feed(Pardoned(command.batch, time.monotonic() + ruling.after))

    def _fail(self, command: Fail) -> None:
        self._end_with(RestartsSpent(command.cause, command.restarts, *self._inquest.last))

    def _end_with(self, error: BaseException) -> None:
        self.close()
        self._outcome, self._due = Error(error), None

    def _end(self) -> None:
        error, self._draws.failure = self._draws.failure, None
        if error is None and not self.closed:
            self._judge.finish()
        self._outcome, self._due = Error(error or StopIteration()), None

    def _whose(self, who: Worker) -> Whose:
        return Whose(who.seat, who.life, self._roster[who].process.pid)
