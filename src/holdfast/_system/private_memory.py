"""Memory of this process alone, in large pieces."""

from __future__ import annotations

import mmap

# Memory that is shared, Python's default, has no huge pages, and each piece of it counts as a map of its own.
_OWN = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


def private_memory(size: int) -> mmap.mmap:
    """So many bytes, in huge pages where the kernel has them."""
    mapping = mmap.mmap(-1, size, **_OWN)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            mapping.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            pass  # a kernel without huge pages
    return mapping
