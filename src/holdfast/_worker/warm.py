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

LEAST = 32 << 20  # bytes; below, glibc keeps what was freed, and keeps the memory of all samples of a batch with it
_IDLE = 2  # mappings that may wait for a batch: as many as a steady trainer gives back between two of them


class Warm:
    """One thread takes; tensors may die in any."""

    def __init__(self) -> None:
        self._idle: deque[mmap.mmap] = deque()
        self._lent: dict[int, weakref.ref[memoryview]] = {}  # a reference that is dropped calls nobody

    def tensor(self, shape: tuple[int, ...], dtype: torch.dtype, count: int, size: int) -> torch.Tensor:
        """An uninitialised tensor."""
        mapping, idle, lent = self._take(size), self._idle, self._lent
        view = memoryview(mapping)  # of this tensor alone, so that its end is seen
        number = id(view)

        def give_back(_: weakref.ref[memoryview]) -> None:
            del lent[number]
            if len(idle) < _IDLE:
                idle.append(mapping)

        lent[number] = weakref.ref(view, give_back)
        return torch.frombuffer(view, dtype=dtype, count=count).reshape(shape)

    def _take(self, size: int) -> mmap.mmap:
        """One that fits without waste, else a new one in place of one that has waited in vain."""
        for _ in range(len(self._idle)):
            mapping = self._idle.popleft()
            if size <= len(mapping) <= 2 * size:
                return mapping
            self._idle.append(mapping)
        if self._idle:
            self._idle.popleft()
        mapping = mmap.mmap(-1, size)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            try:
                mapping.madvise(mmap.MADV_HUGEPAGE)
            except OSError:
                pass  # a kernel without huge pages
        return mapping
