"""Shared memory for one worker's batches.

The worker fills it (`Arena`, `Writer`); the trainer's mapping keeps it alive (`ArenaView`); nobody needs to unlink
it. A batch lies in one block as a rule. The trainer's tensors are views of that block, and when the last of them
dies the block is noted as free and goes back to the worker with the next message.
"""

from __future__ import annotations

import mmap
import weakref
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable

from holdfast._system.segments import Segment

ALIGNMENT = 64
FIRST_EXTENT = 1 << 20
FULL_STRIDE = 1 << 26  # up to here an arena doubles, from here on it grows by a quarter
PAGE = mmap.ALLOCATIONGRANULARITY


class ArenaFull(MemoryError):
    """No room for a block: what was asked for, what the arena holds already, and the limit it would pass."""

    def __init__(self, wanted: int, held: int, limit: int, reason: str) -> None:
        super().__init__(wanted, held, limit, reason)
        self.wanted, self.held, self.limit, self.reason = wanted, held, limit, reason


def aligned(size: int, to: int = ALIGNMENT) -> int:
    return -(-size // to) * to


class _Extent:
    """One mapping and its free space, as sorted (start, size) pairs that never touch each other."""

    __slots__ = ("base", "sizes", "starts", "view")

    def __init__(self, base: int, mapping: mmap.mmap, size: int) -> None:
        self.base, self.view = base, memoryview(mapping)
        self.starts, self.sizes = [0], [size]

    def take(self, size: int) -> int:
        for i, free in enumerate(self.sizes):
            if free >= size:
                start = self.starts[i]
                if free == size:
                    del self.starts[i], self.sizes[i]
                else:
                    self.starts[i], self.sizes[i] = start + size, free - size
                return start
        return -1

    def give_back(self, start: int, size: int) -> None:
        starts, sizes = self.starts, self.sizes
        i = bisect_left(starts, start)
        if i and starts[i - 1] + sizes[i - 1] == start:
            i -= 1
            sizes[i] += size
        else:
            starts.insert(i, start)
            sizes.insert(i, size)
        if i + 1 < len(starts) and starts[i] + sizes[i] == starts[i + 1]:
            sizes[i] += sizes[i + 1]
            del starts[i + 1], sizes[i + 1]


class Arena:
    """The worker's side: gives out blocks, takes them back, grows geometrically. Owns its segment handle."""

    def __init__(
        self,
        segment: Segment,
        limit: int | None,
        room: Callable[[], int],
        announce: Callable[[int, int], None],
        alignment: int = ALIGNMENT,
    ) -> None:
        self._segment, self._limit, self._room, self._announce = segment, limit, room, announce
        self._alignment = alignment
        self._extents: list[_Extent] = []
        self._bases: list[int] = []
        self._taken: dict[int, int] = {}
        self._in_use: dict[int, weakref.ref[memoryview]] = {}
        self._lingering: list[int] = []  # given back by the trainer, but something in this process still looks at it
        self.size = 0

    def take(self, size: int) -> tuple[int, memoryview]:
        """A block of ``size`` bytes: its number in the arena, and its bytes.

        It is used again when the trainer has given it back *and* nothing made from these bytes lives in this process: a
        collate_fn may well keep what it collated.
        """
        if self._lingering:
            self._look_again()
        size = aligned(size, self._alignment)
        for extent in self._extents:
            start = extent.take(size)
            if start >= 0:
                break
        else:
            extent = self._grow(size)
            start = extent.take(size)
        block = extent.base + start
        self._taken[block] = size
        view = extent.view[start : start + size]
        self._in_use[block] = weakref.ref(view)
        return block, view

    def give_back(self, block: int) -> None:
        """The trainer is done with the block; a block that is free already is left alone."""
        in_use = self._in_use.get(block)
        if in_use is not None and in_use() is not None:
            self._lingering.append(block)
            return
        self._in_use.pop(block, None)
        size = self._taken.pop(block, 0)
        if size:
            extent = self._extents[bisect_right(self._bases, block) - 1]
            extent.give_back(block - extent.base, size)

    def trim(self, block: int, used: int) -> None:
        """Give back the end of a block that was not needed."""
        size, used = self._taken[block], aligned(used, self._alignment)
        if used < size:
            self._taken[block] = used
            extent = self._extents[bisect_right(self._bases, block) - 1]
            extent.give_back(block - extent.base + used, size - used)

    def close(self) -> None:
        """No more blocks will be taken; the mappings go with what is made from them."""
        self._extents.clear()
        self._bases.clear()

    def _look_again(self) -> None:
        lingering, self._lingering = self._lingering, []
        for block in lingering:
            self.give_back(block)

    def _grow(self, wanted: int) -> _Extent:
        step = min(self.size, max(FULL_STRIDE, self.size // 4))
        size = aligned(max(wanted, step, FIRST_EXTENT), PAGE)
        least = aligned(wanted, PAGE)
        if self._limit is not None:
            if self.size + least > self._limit:
                raise ArenaFull(wanted, self.size, self._limit, "max_shared_memory")
            size = max(least, min(size, (self._limit - self.size) // PAGE * PAGE))
        room = self._room()
        if size > room:
            size = least
        if size > room:
            raise ArenaFull(wanted, self.size, self.size + room, "memory")
        try:
            base = self._segment.extend(size)
        except MemoryError:
            raise ArenaFull(wanted, self.size, self.size, "memory") from None
        try:
            mapping = self._segment.map(base, size)
        except OSError:  # of address space: RLIMIT_AS, or more maps than the system allows
            raise ArenaFull(wanted, self.size, self.size, "memory") from None
        extent = _Extent(base, mapping, size)
        self._extents.append(extent)
        self._bases.append(base)
        self.size += size
        self._announce(base, size)
        return extent


class Writer:
    """Lays the parts of one batch side by side in as few blocks as possible; one block once it knows the usual size."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._usual = 0
        self._blocks: list[tuple[int, int]] = []  # (block, bytes used), full ones
        self._block = -1
        self._view: memoryview | None = None
        self._used = self._size = 0

    def place(self, size: int) -> tuple[memoryview, int, int]:
        """Room for ``size`` bytes: the bytes of a block, where in it, and which block of the batch it is."""
        if self._view is None or self._used + size > self._size:
            self._close_block()
            self._size = aligned(max(size, self._usual))
            self._block, self._view = self._arena.take(self._size)
        start = self._used
        self._used = start + aligned(size)
        return self._view, start, len(self._blocks)

    def finish(self) -> list[tuple[int, int]]:
        """The batch is complete: its blocks, which from now on belong to the trainer."""
        self._close_block()
        blocks, self._blocks = self._blocks, []
        self._usual = sum([size for _, size in blocks])
        return blocks

    def abandon(self) -> None:
        """The batch failed: everything it took is free again."""
        self._close_block()
        for block, _ in self._blocks:
            self._arena.give_back(block)
        self._blocks = []

    def _close_block(self) -> None:
        if self._view is not None:
            self._arena.trim(self._block, self._used)
            self._blocks.append((self._block, self._used))
            self._view, self._used = None, 0


class ArenaView:
    """The trainer's side: maps what the worker announced and lends out blocks. Outlives the worker."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._views: list[memoryview] = []
        self._bases: list[int] = []
        self._lent: dict[int, weakref.ref[memoryview]] = {}
        self._returned: deque[int] = deque()

    def extended(self, base: int, size: int) -> None:
        self._bases.append(base)
        self._views.append(memoryview(self._segment.map(base, size)))

    def lend(self, block: int, size: int) -> memoryview:
        """The bytes of a block. It is free again when the last object made from them is gone."""
        i = bisect_right(self._bases, block) - 1
        start = block - self._bases[i]
        view = self._views[i][start : start + size]
        lent, returned = self._lent, self._returned

        def give_back(_: weakref.ref[memoryview]) -> None:
            del lent[block]
            returned.append(block)

        lent[block] = weakref.ref(view, give_back)
        return view

    def place(self, block: int) -> tuple[mmap.mmap, int]:
        """Which mapping it lies in, and where there."""
        i = bisect_right(self._bases, block) - 1
        mapping: mmap.mmap = self._views[i].obj  # type: ignore[assignment]
        return mapping, block - self._bases[i]

    def discard(self, block: int) -> None:
        """A block that nobody will look at."""
        self._returned.append(block)

    def returned(self) -> tuple[int, ...]:
        """Blocks that became free since the last call, for the worker to use again."""
        returned = self._returned
        if not returned:
            return ()
        return tuple(returned.popleft() for _ in range(len(returned)))

    def close(self) -> None:
        """No more blocks will be lent or announced; those that are lent stay good until they die."""
        self._segment.close()
