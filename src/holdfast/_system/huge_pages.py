"""Huge pages for a process that is forked again and again.

A fork copies the page table, and its end takes that down again: 37,000 entries where torch is imported, or a few
hundred if most of that memory lies in huge pages. Linux 6.1 and later moves it there on request. Elsewhere the request
is refused, and nothing is different.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

SIZE = 2 << 20
_COLLAPSE = 25  # MADV_COLLAPSE


def collapse(address: int) -> None:
    """Move what lies here into a huge page; this takes some milliseconds. Memory that forks share would be copied."""
    _madvise(address, SIZE, _COLLAPSE)


def candidates() -> list[int]:
    """Addresses at which anonymous, private memory fills a huge page, or could."""
    try:
        lines = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
    except OSError:
        return []  # another system, or one that does not tell
    spans = [span.split("-") for span, access, _, _, _, *name in lines if access == "rw-p" and name in ([], ["[heap]"])]
    return [address for first, end in spans for address in _aligned(int(first, 16), int(end, 16))]


def _aligned(first: int, end: int) -> range:
    return range(-(-first // SIZE) * SIZE, end // SIZE * SIZE, SIZE)


if sys.platform == "linux":
    _madvise = ctypes.CDLL(None).madvise
    _madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
