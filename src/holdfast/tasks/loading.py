"""One batch of a loader, in the hands of a pool."""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from holdfast._engine.berth import Berth
from holdfast._transport.codec import Decoder, Encoded
from holdfast._transport.logbook import Entry, Phase
from holdfast._transport.messages import Handed, Load, Loaded, Message, Raised, Report, pack, unpack
from holdfast._worker.guest import Left

from .calls import Call
from .kits import Kit

Said = list[Message] | Left | BaseException


class Unwanted(Exception):
    """It was taken back before anybody began it."""


class Asks(Protocol):
    def settled(self, loading: Loading, said: Said) -> None: ...


class Loading(Call):
    """Belongs to the stand-in that asked for it. The loader decides what becomes of a failure, not the pool."""

    retried = False

    def __init__(self, kit: Kit, begin: bytes, load: Load, asks: Asks) -> None:
        super().__init__(kit, [pickle.dumps((begin, pack(load)))], "map", None, background=True)
        self.batch, self._asks = load.batch, asks
        self.berth: Berth | None = None  # of the pool's worker that was sent it, as the pool holds it
        self.pid = 0

    def handed(self, berth: Berth) -> None:
        self.berth, self.pid = berth, berth.process.pid

    def describe(self, item: int) -> str:
        return f"a DataLoader's batch {self.batch}"

    def settle(self, items: Sequence[int], values: list[Any], errors: Mapping[int, BaseException | None]) -> None:
        error = errors.get(0)
        self._asks.settled(self, self._said(values[0]) if error is None else error)

    @property
    def runs(self) -> bool:
        """Whether its worker is at it, and not at something before it."""
        if self.berth is None:
            return False
        entry = self.berth.logbook.read()
        return entry.batch == self.tasks[0] and entry.phase in (Phase.RUNNING, Phase.RETURNING)

    def entry(self) -> Entry:
        """What a worker of the loader's own would have in its logbook. One that waits for its turn does not stall."""
        if self.berth is None or not self.runs:
            return waiting()
        task, guest = self.berth.logbook.read(), self.berth.logbook.of_guest().read()
        if task.phase is Phase.RETURNING:
            return Entry(Phase.SENDING, self.batch, -1, task.since)
        return guest if guest.since >= task.since else Entry(Phase.UNPACKING, -1, -1, task.since)

    def _said(self, answer: bytes) -> list[Message] | Left:
        said = pickle.loads(answer)
        if isinstance(said, Left):
            return said
        return [self._taken(each) if isinstance(each, Loaded) else each for each in map(unpack, said)]

    def _taken(self, loaded: Loaded) -> Handed | Raised:
        """The batch itself: it lies in the arena of the pool's worker, of which the crew knows nothing."""
        assert self.berth is not None
        decoder = Decoder(self.berth.arena.lend)
        try:
            build = decoder.learn(Encoded(*loaded[1:5]))
            return Handed(loaded.batch, decoder.decode(build, loaded.blocks, loaded.inline))
        except Exception as error:  # it cannot be unpickled here
            return Raised(loaded.batch, [Report(None, error, "", "", fatal=True, whole=True)])


def waiting() -> Entry:
    return Entry(Phase.IDLE, -1, -1, time.monotonic())
