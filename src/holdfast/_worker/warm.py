"""Memory of batches that nobody holds any more, for the batches to come.

A large batch is large enough for the allocator to get its memory from the system, and to give it back at once when the
batch dies: for each batch every page is made anew, which takes as long as filling it. A thread's batches are handed
over as they are, so what it needs is only to know when the last tensor that looks at them is gone.
"""

from __future__ import annotations

import mmap
import weakref
from collections import deque

import torch

from holdfast._system.private_memory import private_memory

LEAST = 1 << 20  # bytes; the allocator keeps less for itself
_MOST = (32 << 20) - (1 << 16)  # bytes of a block that makes glibc keep what is freed, see `_tell_allocator`
_IDLE = 2  # mappings that may wait for a batch: as many as a steady trainer gives back between two of them; ...
_AND_MORE = 32 << 20  # ... more of small ones, as long as they are no more than so many bytes together


class Warm:
    """One thread takes; tensors may die in any."""

    def __init__(self) -> None:
        self._idle: deque[mmap.mmap] = deque()
        self._lent: dict[int, weakref.ref[memoryview]] = {}  # a reference that is dropped calls nobody
        self._told = 0  # bytes of the largest batch that the allocator has heard of

    def tensor(self, shape: tuple[int, ...], dtype: torch.dtype, count: int, size: int) -> torch.Tensor:
        """An uninitialised tensor."""
        mapping, idle, lent = self._take(size), self._idle, self._lent
        view = memoryview(mapping)  # of this tensor alone, so that its end is seen
        number = id(view)

        def give_back(_: weakref.ref[memoryview]) -> None:
            del lent[number]
            if len(idle) < max(_IDLE, _AND_MORE // len(mapping)):
                idle.append(mapping)

        lent[number] = weakref.ref(view, give_back)
        return torch.frombuffer(view, dtype=dtype, count=count).reshape(shape)

    def _take(self, size: int) -> mmap.mmap:
        """The last one that fits without waste, as some of it is in the cache; else a new one, in place of the one that
        has waited longest."""
        for _ in range(len(self._idle)):
            mapping = self._idle.pop()
            if size <= len(mapping) <= 2 * size:
                return mapping
            self._idle.appendleft(mapping)
        if self._idle:
            self._idle.popleft()
        self._tell_allocator(size)
        return private_memory(size)

    def _tell_allocator(self, size: int) -> None:
        """glibc keeps up to twice the size of the largest block that it has seen freed, which would be a batch. It sees
        none of these, and would return the memory of every large sample to the system, and have its pages made anew."""
        if size > self._told:
            self._told = size
            torch.empty(min(size, _MOST), dtype=torch.uint8)
