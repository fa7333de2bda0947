"""Deaths and stalls of a crew's workers: what is known about each, and what the judge makes of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from holdfast._core.commands import Condemn
from holdfast._core.events import Worker, WorkerExited
from holdfast._core.machine import Machine
from holdfast._system.memory_events import OomWatch
from holdfast._transport.logbook import Entry, Phase
from holdfast.errors import LoaderTimeout, Verdict, WorkerDied, WorkerStalled

from .berth import Berth
from .draws import Draws
from .judge import Judge, Ruling, Whose
from .watch import Berths, Silent, Watch, explain

_NOBODY = Whose(0, 0, 0)
SHOWN = 6  # innermost calls of a stalled worker


class Inquest:
    """Owned by the crew, and told of every end. Batches are numbered as the machine does."""

    def __init__(self, judge: Judge, machine: Machine, *, processes: bool) -> None:
        self._judge, self._machine = judge, machine
        self._draws = Draws(iter(()).__next__)
        self._oom = OomWatch() if processes else OomWatch([])  # to look for groups of memory takes 0.3 ms
        self._deaths: dict[int, tuple[Whose, Verdict]] = {}  # by batch: the latest worker that it ended
        self._rulings: dict[int, Ruling] = {}  # by batch: on stalls, decided before the worker was ended
        self._latest: tuple[Whose, Verdict] = (_NOBODY, Verdict(None))
        self._open: tuple[Worker, WorkerExited, int] | None = None

    def begin(self, draws: Draws) -> None:
        self._draws = draws
        self._deaths.clear()
        self._rulings.clear()

    @property
    def last(self) -> tuple[int, int, Verdict]:
        """Seat, pid and verdict of the last death."""
        whose, verdict = self._latest
        return whose.seat or 0, whose.pid or 0, verdict

    def doing(self, entry: Entry) -> str:
        """What a worker is at, with batches counted from the beginning of the epoch."""
        return replace(entry, batch=entry.batch - self._machine.first).words(self._indices(entry.batch))

    def again(self, entry: Entry) -> str:
        """By which command that can be seen again."""
        if entry.phase is not Phase.FETCHING or entry.sample < 0:
            return ""
        return self._judge.again(entry.batch - self._machine.first, self._sample(entry.batch, entry.sample))

    # -- deaths --------------------------------------------------------------------------------

    def hold(self, who: Worker, berth: Berth) -> WorkerExited | None:
        """A process is gone. None when it was to end: nobody has to be told."""
        if who.life != self._machine.seats[who.seat].life:
            return None
        entry = berth.logbook.read()
        batch, held = entry.batch if entry.loading else None, self._machine.seats[who.seat].held
        if entry.phase is Phase.REPLAYING and held:
            batch = held[0]  # to which it was on the way
        known = entry.phase in (Phase.FETCHING, Phase.COLLATING) and entry.sample >= 0
        indices = self._indices(batch)
        from .autopsy import examine  # late, as most runs need none

        verdict = examine(berth, self._oom, self._machine.first, indices if isinstance(indices, list | tuple) else None)
        self._latest = Whose(who.seat, who.life, berth.process.pid), verdict
        if batch is not None:
            self._deaths[batch] = self._latest
        event = WorkerExited(who, batch, entry.sample if known else None)
        self._open = who, event, self._machine.budget.deaths
        return event

    def close(self, who: Worker) -> None:
        """The machine has answered: a death that led to nothing but a restart is entered as that."""
        if self._open is None or self._open[0] != who:
            return
        (_, event, deaths), self._open = self._open, None
        if self._machine.budget.deaths == deaths or self._machine.over:
            return  # it had done its part; or it is the last straw, and told as such
        whose, _ = self._latest
        error = self._died(event.batch, event.sample, 1)
        self._judge.note("death", "restarted", error, whose, self._number(event.batch), error.sample)

    def sentence(self, command: Condemn) -> Ruling:
        """What becomes of a batch that ended its worker too often, or did not come to an end."""
        self._open = None
        ruling = self._rulings.pop(command.batch, None)
        if ruling is not None:
            return ruling
        whose, _ = self._deaths.get(command.batch, self._latest)
        attempts = self._judge.tried(command.batch - self._machine.first, command.sample) + command.attempts
        error = self._died(command.batch, command.sample, attempts)
        return self._rule(command.batch, command.sample, error, whose)

    def _died(self, batch: int | None, position: int | None, attempts: int) -> WorkerDied:
        whose, verdict = self._latest if batch is None else self._deaths.get(batch, self._latest)
        sample, indices = self._sample(batch, position), self._indices(batch)
        where = self._judge.describe(sample) if sample is not None else ""
        return WorkerDied(whose.seat, whose.pid, verdict, self._number(batch), sample, indices, attempts, where)

    # -- stalls --------------------------------------------------------------------------------

    def look(self, watch: Watch, berths: Berths) -> Iterator[tuple[Silent, Ruling]]:
        """Who has stalled, and what is to be done about it. What is only to be reported, is."""
        for silent in watch.look(berths, self._machine, time.monotonic()):
            error = self._stalled(silent)
            if watch.acts:
                yield silent, self._ruled(silent, error)
            else:
                self._judge.note("stall", "reported", error, silent.whose, error.batch, error.sample)

    def late(self, timeout: float, watch: Watch, berths: Berths) -> LoaderTimeout:
        """No batch came in the time that the user allows: what the slowest worker is at."""
        silent = watch.slowest(berths, self._machine, time.monotonic())
        return LoaderTimeout(timeout, self._machine.waiting_on(), "" if silent is None else self._explained(silent))

    def _stalled(self, silent: Silent) -> WorkerStalled:
        """The ladder: what it waits for, as far as that can be seen."""
        sample, indices = self._sample(silent.batch, silent.sample), self._indices(silent.batch)
        stall = explain(silent)
        return WorkerStalled(
            silent.whose.seat,
            silent.whose.pid,
            self._number(silent.batch),
            sample,
            indices,
            silent.seconds,
            silent.words(self._machine.first, indices),
            "; ".join([f"it {stall.why}", *(stall.unseen if not stall.stack else ())]),
            "\n".join(stall.stack[:SHOWN]),
            self._judge.describe(sample) if sample is not None else "",
        )

    def _ruled(self, silent: Silent, error: WorkerStalled) -> Ruling:
        """What the policy says; kept for when the machine condemns the batch."""
        if silent.batch is None:
            return self._judge.stalled_start(error, silent.whose)
        ruling = self._rule(silent.batch, silent.sample, error, silent.whose)
        if not ruling.held:
            self._rulings[silent.batch] = ruling
        return ruling

    def _explained(self, silent: Silent) -> str:
        error = self._stalled(silent)
        return "\n         ".join([f"worker {error.seat} {error.doing}: {error.why}", *error.stack.splitlines()])

    # -- both ----------------------------------------------------------------------------------

    def _rule(self, batch: int, position: int | None, error: WorkerDied | WorkerStalled, whose: Whose) -> Ruling:
        number = batch - self._machine.first
        if self._machine.limits.bound:
            size = len(self._draws.places) if isinstance(self._draws.places, list) else 1
            place = number // self._machine.limits.seats * size + (position or 0)
            return self._judge.streams.lost(number, place, error, whose)
        return self._judge.killed(number, self._draws.indices.get(number), error, position, whose)

    def _number(self, batch: int | None) -> int | None:
        return None if batch is None else batch - self._machine.first

    def _indices(self, batch: int | None) -> Any:
        if batch is None or self._machine.limits.bound:
            return None
        number = batch - self._machine.first
        plan = self._judge.plan(number, self._draws.indices.get(number))
        return getattr(plan, "indices", plan)

    def _sample(self, batch: int | None, position: int | None) -> Any:
        indices = self._indices(batch)
        if not isinstance(indices, list | tuple):
            return indices
        return indices[position] if position is not None and position < len(indices) else None
