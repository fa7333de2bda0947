"""Arguments on their way to the workers: small ones in the message, large ones in an arena that all workers map."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from holdfast._core.events import Worker
from holdfast._system.limits import memory_room
from holdfast._system.segments import MemfdSegment, NamedSegment, remove_named
from holdfast._transport.arena import PAGE, Arena, Writer
from holdfast._transport.parcels import Packed, Parcel, pack_up
from holdfast._worker.inlet import Inlet
from holdfast.sharing.arguments import Arguments

_NOBODY: set[Worker] = set()


class Sent:
    """Something packed, for as long as somebody may need it: tasks that may have to be sent again, and lives in which
    something of it may be left."""

    __slots__ = ("lives", "needed", "packed", "plain")

    def __init__(self, packed: Packed, plain: bool) -> None:
        self.packed, self.plain, self.needed = packed, plain, 1  # plain: nothing but built-in types
        self.lives: set[Worker] = set() if type(packed) is Parcel else _NOBODY


class Outlet:
    """Owns the arena. Blocks may be given back from any thread; they are used again by the next that packs."""

    def __init__(self, *, named: bool, limit: int | None) -> None:
        self._segment: MemfdSegment | NamedSegment
        if named:
            self._segment = NamedSegment(NamedSegment.new_prefix("outlet"), unlink=False)
        else:
            self._segment = MemfdSegment.create("holdfast-outlet")
        self._lock, self._freed = threading.RLock(), deque[int]()
        self._arena = Arena(self._segment, limit, memory_room, self._grown, PAGE)
        self._writer = Writer(self._arena)
        self._out: dict[int, Sent] = {}  # by block
        self.extents: list[tuple[int, int]] = []
        self.announce: Callable[[int, int], None] = _nobody_yet

    def inlet(self) -> Inlet:
        """The workers' end."""
        return Inlet(self._segment)

    def pack(self, value: object) -> Sent:
        with self._lock:
            while self._freed:
                self._arena.give_back(self._freed.popleft())
            sent = Sent(*pack_up(value, self._writer, Arguments))
        if type(sent.packed) is Parcel:
            self._out.update(dict.fromkeys((block for block, _ in sent.packed.blocks), sent))
        return sent

    def send(self, sent: Sent, who: Worker) -> None:
        """This worker is going to see it."""
        if type(sent.packed) is Parcel and sent.packed.blocks:
            sent.lives.add(who)

    def returned(self, who: Worker, blocks: Iterable[int]) -> None:
        """Nothing of these is left in that worker."""
        for block in blocks:
            sent = self._out.get(block)
            if sent is not None:
                sent.lives.discard(who)
                self._free(sent)

    def gone(self, who: Worker) -> None:
        for sent in {sent for sent in self._out.values() if who in sent.lives}:
            sent.lives.discard(who)
            self._free(sent)

    def done(self, sent: Sent) -> None:
        """One who needed it does so no longer."""
        sent.needed -= 1
        self._free(sent)

    def close(self) -> None:
        self._arena.close()
        self._segment.close()
        if isinstance(self._segment, NamedSegment):
            remove_named(self._segment.prefix)

    def _free(self, sent: Sent) -> None:
        if type(sent.packed) is not Parcel or sent.needed or sent.lives:
            return
        for block, _ in sent.packed.blocks:
            if self._out.pop(block, None) is not None:
                self._freed.append(block)

    def _grown(self, base: int, size: int) -> None:
        self.extents.append((base, size))
        self.announce(base, size)


def _nobody_yet(base: int, size: int) -> None: ...
