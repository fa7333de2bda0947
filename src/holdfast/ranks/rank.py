"""All that the parent holds of one rank, and what it has heard of it."""

from __future__ import annotations

import math
import os
import pickle
import signal
import time

from holdfast._engine.berth import Berth
from holdfast._system.process import Process
from holdfast._system.segments import MemfdSegment
from holdfast._system.stderr import Stderr
from holdfast._system.waiting import WRITE, Waiter
from holdfast._transport.messages import InitFailed, unpack

from .telling import FAILING, Ending, Told, read_outcome


class Rank:
    """Owns its process and the descriptors between us; ``close`` gives them up."""

    def __init__(
        self, number: int, berth: Berth, logbook: MemfdSegment, outcome: MemfdSegment, stdout: Stderr | None
    ) -> None:
        self.number, self.berth, self._stdout = number, berth, stdout
        self._logbook, self._outcome = logbook, outcome
        self.told: Told | None = None
        self.packed = b""  # the result, or the exception
        self.ended = self._crashed = False
        self._died = 0.0  # not before this
        self._stopped = math.inf  # when we began to end it
        self._killed = False  # by us
        self._speaks = True

    @property
    def process(self) -> Process:
        return self.berth.process

    def watch(self, waiter: Waiter) -> None:
        if self.ended:
            return
        waiter.watch(self.process.sentinel)
        if self._speaks:
            waiter.watch(self.berth.channel.fileno())
        if self.berth.channel.backlog() >= 0:
            waiter.watch(self.berth.channel.backlog(), WRITE)
        for outlet in self._outlets():
            waiter.watch(outlet.fileno())

    def hear(self, ready: set[int], well: float) -> None:
        """What happened on these descriptors, some of which are its own; ``well``: when nobody had failed yet."""
        if self.ended:
            return
        if self.berth.channel.backlog() in ready:
            self.berth.channel.flush()
        ended = self.process.sentinel in ready and self.process.heard()
        for outlet in self._outlets():
            if (ended or outlet.fileno() in ready) and not outlet.forward():
                outlet.close()
        if self._speaks and (ended or self.berth.channel.fileno() in ready):
            self._listen()
        if ended:
            self._has_ended(well)

    def failed_at(self) -> float | None:
        """When it failed, by the monotonic clock; None when it has not, or only because we were ending it."""
        at = self._failed_at()
        return at if at is not None and at < self._stopped else None

    def stop(self, *, kill: bool) -> None:
        """SIGTERM, or SIGKILL. Harmless when it has ended."""
        if not self.ended:
            self._stopped, self._killed = min(self._stopped, time.monotonic()), kill
            (self.process.kill if kill else self.process.terminate)()

    @property
    def timed(self) -> bool:
        """Whether the moment of its failure is known, and not only a moment when it had not yet failed."""
        return self.told is not None or self._crashed

    def _failed_at(self) -> float | None:
        if self.told is not None and self.told.ending is not Ending.RETURNED:
            return self.told.at
        entry = self.berth.logbook.read()
        if entry.phase is FAILING:
            return entry.since  # it is about to tell
        if self.ended and (self.told is None or self.process.exitcode):
            # A death that nobody timed came first: what kills a rank from outside is seldom a consequence.
            return self._died
        return None

    def close(self) -> None:
        """What it has printed is shown first."""
        if self._stdout is not None:
            self._stdout.close()
        self.berth.close()
        self._logbook.close()

    def _has_ended(self, well: float) -> None:
        self.ended, self._crashed = True, bool(self.berth.logbook.crash_stack())
        if self.process.exitcode == -signal.SIGKILL and not self._killed:
            self._stopped = math.inf  # what we sent it came too late
        if self._crashed:  # its stack was written then
            self._died = os.fstat(self._logbook.fd).st_mtime - time.time() + time.monotonic()
        else:
            self._died = well if self._stopped == math.inf else math.inf

    def _outlets(self) -> list[Stderr]:
        return [one for one in (self._stdout, self.process.stderr) if one is not None and one.fileno() >= 0]

    def _listen(self) -> None:
        try:
            while messages := self.berth.channel.receive():
                for message in messages:
                    self._note(message)
        except EOFError:
            self._speaks = False

    def _note(self, message: bytes) -> None:
        heard = pickle.loads(message)
        if isinstance(heard, Told):
            self.told, self.packed = heard, read_outcome(self._outcome, heard.size)
            return
        failed = unpack(message)  # a worker of the zygote that did not come as far as the function
        assert isinstance(failed, InitFailed)
        assert isinstance(failed.error, bytes)
        self.told, self.packed = Told(Ending.RAISED, time.monotonic(), len(failed.error)), failed.error
