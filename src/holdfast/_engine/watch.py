"""Who has been silent for too long."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from holdfast._core.events import Worker
from holdfast._core.machine import Machine
from holdfast._transport.logbook import Entry, Phase

from .berth import Berth
from .judge import Whose

if TYPE_CHECKING:
    from .stalls import Stall

REPORT_AFTER = 60.0  # seconds, when nobody said otherwise
Berths = Iterable[tuple[Worker, Berth]]


@dataclass(frozen=True, slots=True)
class Silent:
    """A worker that makes no progress, and what its logbook says. ``sample`` is a position in the batch."""

    who: Worker
    berth: Berth
    entry: Entry
    batch: int | None
    sample: int | None
    seconds: float

    @property
    def whose(self) -> Whose:
        return Whose(self.who.seat, self.who.life, self.berth.process.pid)

    def words(self, first: int, indices: Any) -> str:
        """What it is doing, with batches counted from the beginning of the epoch."""
        if self.entry.phase is Phase.IDLE and self.batch is not None:
            return f"batch {self.batch - first} waits to be begun"
        return replace(self.entry, batch=self.entry.batch - first).words(indices)


class Watch:
    """What a crew is watched for. ``acts``: a stall is not only reported. ``memory``: bytes that a worker may have."""

    def __init__(self, stall_timeout: float | None = None, max_worker_memory: int | None = None) -> None:
        self.timeout = REPORT_AFTER if stall_timeout is None else stall_timeout or math.inf
        self.acts = bool(stall_timeout)
        self.memory = max_worker_memory or 0
        self.next_look = math.inf
        self._told: dict[Worker, float] = {}  # since when those were silent that were reported already
        self._places: dict[Worker, tuple[int, int, float]] = {}  # batch and sample at the last look, and since when

    def begin(self, now: float) -> None:
        self.next_look = now + self.timeout / 2

    def look(self, berths: Berths, machine: Machine, now: float) -> Iterator[Silent]:
        """Those whose time is up, each once; sets the time of the next look."""
        half = self.timeout / 2
        next_look, found = now + half, []
        for silent in _busy(berths, machine, now):
            since = max(now - silent.seconds, self._there_since(silent, now - half))
            if self._told.get(silent.who, -1.0) >= since - 0.001:
                continue
            if now < since + self.timeout:
                next_look = min(next_look, since + half if now < since + half else since + self.timeout)
            else:
                self._told[silent.who] = since
                found.append(replace(silent, seconds=now - since))
        self.next_look = next_look
        return iter(found)

    def _there_since(self, silent: Silent, half_ago: float) -> float:
        """A run of samples has one time in the logbook, its beginning. If they turn slow amid it, what tells is whether
        the worker is where it was at the last look."""
        batch, sample = silent.entry.batch, silent.entry.sample
        if sample <= 0:
            return -math.inf
        if self._places.get(silent.who, ())[:2] != (batch, sample):
            self._places[silent.who] = batch, sample, half_ago
        return self._places[silent.who][2]

    def slowest(self, berths: Berths, machine: Machine, now: float) -> Silent | None:
        return max(_busy(berths, machine, now), key=lambda silent: silent.seconds, default=None)


def _busy(berths: Berths, machine: Machine, now: float) -> Iterator[Silent]:
    for who, berth in berths:
        seat, entry = machine.seats[who.seat], berth.logbook.read()
        if who.life != seat.life:
            continue  # it is leaving
        since = max(entry.since, berth.since)
        if entry.loading and entry.batch in seat.held and entry.phase is not Phase.REPLAYING:
            sample = entry.sample if entry.sample >= 0 else None
            yield Silent(who, berth, entry, entry.batch, sample, now - since)
        elif entry.loading:  # on the way to what it holds, or held up by what nobody wants any more
            if seat.held:
                yield Silent(who, berth, entry, seat.held[0], None, now - since)
        elif entry.phase is not Phase.IDLE:
            yield Silent(who, berth, entry, None, None, now - since)
        elif seat.held:
            yield Silent(who, berth, entry, seat.held[0], None, now - max(since, seat.since))


def explain(silent: Silent) -> Stall:
    """What it waits for. A thread is looked at from inside."""
    from .stalls import examine, examine_thread  # late, as most runs need none

    ident = silent.berth.process.ident
    return examine(silent.berth.process.pid) if ident is None else examine_thread(ident)
