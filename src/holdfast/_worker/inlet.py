"""Where a pool's worker finds what its parent sends beside the pipe: the parent's arena, which all workers map."""

from __future__ import annotations

import mmap
from multiprocessing.reduction import DupFd
from typing import Any

from holdfast._system.segments import MemfdSegment, NamedSegment, Segment
from holdfast._transport.arena import PAGE, ArenaView, aligned
from holdfast._transport.parcels import Packed, Parcel, unwrap


class Inlet:
    """Travels with the pool's errand. Owns its handle of the memory.

    Arguments may be written to. As a rule they are the worker's from then on; of a parcel that may have to be sent once
    more, its writes go to pages of its own.
    """

    def __init__(self, segment: MemfdSegment | NamedSegment) -> None:
        self._segment = segment
        self._shared, self._private = ArenaView(segment), _PrivateView(_Private(segment))

    def __reduce__(self) -> Any:
        if isinstance(self._segment, MemfdSegment):
            return _inherited, (DupFd(self._segment.fd),)
        return Inlet, (self._segment,)

    def extended(self, base: int, size: int) -> None:
        self._shared.extended(base, size)
        self._private.extended(base, size)

    def unwrap(self, packed: Packed, private: bool) -> Any:
        return unwrap(packed, (self._private if private else self._shared).lend)

    def refuse(self, packed: Packed) -> None:
        """What lies in it will not be looked at."""
        if isinstance(packed, Parcel):
            for block, _ in packed.blocks:
                self._shared.discard(block)

    def returned(self) -> tuple[int, ...]:
        """Blocks of which nothing in this process is left."""
        private = self._private.returned()
        return self._shared.returned() + private if private else self._shared.returned()


class _Private:
    """The same memory, copied when it is written to."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self.extend, self.close = segment.extend, segment.close

    def map(self, base: int, size: int, *, private: bool = True) -> mmap.mmap:
        return self._segment.map(base, size, private=True)


class _PrivateView(ArenaView):
    def lend(self, block: int, size: int) -> memoryview:
        """Without what was written there, in this process, when the block had something else in it."""
        mapping, start = self.place(block)
        if hasattr(mmap, "MADV_DONTNEED"):
            mapping.madvise(mmap.MADV_DONTNEED, start, aligned(size, PAGE))
        return super().lend(block, size)


def _inherited(descriptor: Any) -> Inlet:
    return Inlet(MemfdSegment(descriptor.detach()))
