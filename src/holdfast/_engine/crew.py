"""The crew: carries out what the machine decides, and tells it what happens.

Runs only inside the user's ``next()``: there is no thread. An interrupt that arrives while the crew waits leaves
everything as it was; one that arrives anywhere else leaves the crew in an unknown state, and it is closed.
"""

from __future__ import annotations

import atexit
import math
import os
import time
import weakref
from collections.abc import Callable
from typing import Any

from typing_extensions import assert_never

from holdfast._core.commands import Command, Condemn, Deliver, Discard, Draw, End, Fail, Send, Start
from holdfast._core.events import (
    BatchReady,
    Closed,
    Drawn,
    EpochBegan,
    Event,
    SamplerEnded,
    StreamEnded,
    Ticked,
    Wanted,
    Worker,
    WorkerExited,
    WorkerReady,
)
from holdfast._core.machine import Limits, Machine
from holdfast._system.process import Process
from holdfast._transport.faults import unpack_error
from holdfast._transport.logbook import Phase
from holdfast._transport.messages import (
    Begin,
    Extended,
    Handed,
    InitFailed,
    Load,
    Loaded,
    Message,
    Raised,
    Ready,
    StreamOver,
)
from holdfast.errors import LoaderTimeout, RestartsSpent, Verdict, WorkerDied

from .berth import Berth
from .launchers import Launcher
from .results import ByReference, Error, InArena, Result, add_note, raised_in
from .roster import Exited, Roster
from .tally import Tally

_WANTED = Wanted()
_TICKED = Ticked()
_crews: weakref.WeakSet[Crew] = weakref.WeakSet()


class Crew:
    """Owns the launcher and the roster. Made for one loader, used by one thread at a time."""

    def __init__(self, limits: Limits, launcher: Launcher, tally: Tally | None = None) -> None:
        self._machine = Machine(limits)
        self._launcher = launcher
        self._tally = tally or Tally()
        self._restarts_before = self._tally.restarts
        self._roster = Roster()
        self._bound = limits.bound
        self._indices: dict[int, Any] = {}  # of the batches that are drawn and not yet delivered
        self._drawn = 0
        self._places: Any = None  # in bound mode: what stands for the indices of any batch
        self._results: dict[int, Result] = {}
        self._arriving: tuple[int, Result] | None = None
        self._deaths: dict[int, tuple[int, int, Verdict]] = {}
        self._last_death = (0, 0, Verdict(None))
        self._draw: Callable[[], Any] = iter(()).__next__
        self._epoch = Begin(0, 0, None, 0)
        self._outcome: Result | None = None
        self._sampler_error: BaseException | None = None
        self._owner = os.getpid()
        self.closed = False
        _crews.add(self)

    @property
    def restarts(self) -> int:
        return self._machine.restarts

    @property
    def processes(self) -> list[Process]:
        return self._roster.processes

    def begin(self, seed: int, shared_seed: int | None, draw: Callable[[], Any]) -> None:
        """A new epoch: ``draw`` gives the indices of its batches, one after the other."""
        self._draw, self._sampler_error, self._outcome = draw, None, None
        try:
            commands = self._machine.handle(EpochBegan(), time.monotonic())
            self._drawn = self._machine.first
            self._indices.clear()
            self._deaths.clear()
            self._epoch = Begin(self._machine.first, seed, shared_seed, 0)
            self._roster.tell_all(self._epoch)
            self._carry_out(commands)
        except BaseException:
            self.close()
            raise

    def next(self, timeout: float) -> Any:
        """The next batch, or its error; ``StopIteration`` when the epoch is over."""
        deadline = time.monotonic() + timeout if timeout else math.inf
        if self._outcome is None:  # an interrupt may have come when it was there, and not yet handed over
            self._notice(_WANTED)
        while (outcome := self._outcome) is None:
            ready = self._roster.wait(min(deadline, self._machine.next_deadline()) - time.monotonic())
            if ready:
                self._hear(ready)
            elif time.monotonic() < deadline:
                self._notice(_TICKED)
            else:
                raise LoaderTimeout(timeout, self._machine.waiting_on())
        self._outcome = None
        if not isinstance(outcome, Error):
            return outcome.value()
        error = outcome.error
        del outcome
        try:
            raise error
        finally:
            del error  # its traceback holds this frame, and the frame of the iterator, whose death must close us

    def close(self) -> None:
        """End all workers, now. Harmless when done before, and in a fork of the process that owns them."""
        if self.closed:
            return
        self.closed = True
        _crews.discard(self)
        self._machine.handle(Closed(), time.monotonic())
        if os.getpid() == self._owner:
            self._roster.close()
            self._launcher.close()
        else:
            self._roster.abandon()
        self._results.clear()
        self._indices.clear()

    # -- what happens --------------------------------------------------------------------------

    def _notice(self, event: Event) -> None:
        try:
            self._feed(event)
        except BaseException:
            self.close()
            raise

    def _hear(self, ready: list[int]) -> None:
        try:
            for fd in ready:
                for who, message in self._roster.hear(fd):
                    self._on_message(who, message)
        except BaseException:
            self.close()
            raise

    def _on_message(self, who: Worker, message: Message | Exited) -> None:
        match message:
            case Loaded():
                self._on_result(who, message.batch, InArena(self._roster[who], message))
            case Handed():
                self._on_result(who, message.batch, ByReference(message.value))
            case Extended():
                self._roster[who].arena.extended(message.base, message.size)
            case Raised():
                pid, index = self._roster[who].process.pid, self._index_of(message.batch)
                error = raised_in(who.seat, pid, message.batch - self._machine.first, index, message)
                self._on_result(who, message.batch, error)
            case StreamOver():
                self._feed(StreamEnded(who, message.batch))
            case Ready():
                self._feed(WorkerReady(who))
            case Exited():
                self._on_exit(who, message.berth)
            case InitFailed():
                self._on_init_failure(who, message)
            case _:
                raise AssertionError(f"a worker does not send {message}")

    def _on_result(self, who: Worker, batch: int, result: Result) -> None:
        self._arriving = batch, result
        self._feed(BatchReady(who, batch, result.size))
        if self._arriving is not None:
            self._arriving = None
            self._results[batch] = result

    def _on_exit(self, who: Worker, berth: Berth) -> None:
        entry = berth.logbook.read()
        batch = entry.batch if entry.loading else None
        sample = entry.sample if entry.phase is Phase.FETCHING and entry.sample >= 0 else None
        self._last_death = who.seat, berth.process.pid, berth.verdict()
        if batch is not None:
            self._deaths[batch] = self._last_death
        self._feed(WorkerExited(who, batch, sample))

    def _on_init_failure(self, who: Worker, message: InitFailed) -> None:
        error, traceback = unpack_error(message.error)
        pid = self._roster[who].process.pid
        add_note(error, f"in worker {who.seat} (pid {pid}), before its first batch\n\n{traceback}".rstrip())
        self.close()
        self._outcome = Error(error)

    # -- what to do about it -------------------------------------------------------------------

    def _feed(self, event: Event) -> None:
        self._carry_out(self._machine.handle(event, time.monotonic()))

    def _carry_out(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case Deliver():
                    self._outcome = self._take(command.batch)
                    self._indices.pop(command.batch, None)
                case Send():
                    self._send(command.who, command.batch)
                case Draw():
                    self._draw_batches(command.count)  # the machine asks once, and last
                case Discard():
                    self._take(command.batch).discard()
                case Start():
                    self._start(command.who, command.skip)
                case Condemn():
                    self._results[command.batch] = self._condemned(command)
                case Fail():
                    self._fail(command)
                case End():
                    self._end()
                case _:
                    assert_never(command)

    def _take(self, batch: int) -> Result:
        if self._arriving is not None and self._arriving[0] == batch:
            result, self._arriving = self._arriving[1], None
            return result
        return self._results.pop(batch)

    def _send(self, who: Worker, batch: int) -> None:
        freed = self._roster[who].arena.returned()
        self._roster.tell(who, Load(batch, self._index_of(batch), freed))

    def _keep(self, index: Any) -> None:
        if self._bound:
            self._places = index
        else:
            self._indices[self._drawn] = index
            self._drawn += 1

    def _index_of(self, batch: int) -> Any:
        return self._places if self._bound else self._indices.get(batch)

    def _draw_batches(self, count: int) -> None:
        drawn, ended = 0, False
        while drawn < count and not ended:
            try:
                index = self._draw()
            except StopIteration:
                ended = True
            except Exception as error:
                ended, self._sampler_error = True, error  # told when all that was drawn before has been delivered
            else:
                drawn += 1
                self._keep(index)
        if drawn:
            self._feed(Drawn(drawn))
        if ended:
            self._feed(SamplerEnded())

    def _start(self, who: Worker, skip: int) -> None:
        berth = self._launcher.launch(who.seat)
        self._roster.add(who, berth)
        self._roster.tell(who, self._epoch._replace(skip=skip))
        self._tally.restarts = self._restarts_before + self._machine.restarts

    def _condemned(self, command: Condemn) -> Error:
        seat, pid, verdict = self._deaths.pop(command.batch, self._last_death)
        indices = self._index_of(command.batch)
        sample = None
        if command.sample is not None and isinstance(indices, list | tuple) and command.sample < len(indices):
            sample = indices[command.sample]
        batch = command.batch - self._machine.first
        return Error(WorkerDied(seat, pid, verdict, batch, sample, indices, command.attempts))

    def _fail(self, command: Fail) -> None:
        self._outcome = Error(RestartsSpent(command.cause, command.restarts, *self._last_death))
        self.close()

    def _end(self) -> None:
        self._outcome = Error(self._sampler_error or StopIteration())
        self._sampler_error = None


def _close_all() -> None:
    for crew in list(_crews):
        crew.close()


atexit.register(_close_all)
