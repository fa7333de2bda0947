"""Where in memory the parts of a value lie: laid out by one side, built by the other."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from .arena import Writer
from .leaves import BufferLeaf, Leaf, Region
from .packer import put_together

INLINE = 2048  # bytes up to which a copy through the pipe is cheaper than a block's way there and back
LONG_SKELETON = 1 << 15
_PADDING = [bytes(-size % 16) for size in range(16)]
Places = tuple[tuple[int, int], ...]


class Layout(NamedTuple):
    """How to make a batch from its blocks. ``places`` says for each region: which block, where in it."""

    skeleton: bytes  # empty when it was so long that it lies in the last region
    leaves: tuple[Leaf, ...]
    places: Places
    skeleton_size: int = 0
    structure: Any = None  # when it is a simple one, for which no skeleton is needed

    def build(self, buffers: Sequence[Any]) -> Any:
        """The batch. ``buffers`` are its blocks, or the one inline buffer; what is made here keeps them alive."""
        of_regions = [buffers[block] for block, _ in self.places]
        starts = [start for _, start in self.places]
        objects = [leaf.rebuild(of_regions, starts) for leaf in self.leaves]
        out_of_band = [made for made, leaf in zip(objects, self.leaves, strict=True) if type(leaf) is BufferLeaf]
        skeleton: bytes | memoryview = self.skeleton
        if self.skeleton_size:
            skeleton = memoryview(of_regions[-1])[starts[-1] : starts[-1] + self.skeleton_size]
        return put_together(skeleton, objects, out_of_band)


def lay_out(
    regions: list[Region], writer: Writer, made: Mapping[int, tuple[int, int]] = MappingProxyType({})
) -> tuple[Places, list[tuple[int, int]], bytes | None]:
    """Places of the regions, and either the blocks or the bytes that they now lie in. Those at the addresses in
    ``made`` are in place already."""
    if not made and sum([region.size for region in regions]) <= INLINE:
        places, start = [], 0
        parts: list[bytes] = []
        for region in regions:
            places.append((0, start))
            parts += region.bytes(), _PADDING[region.size % 16]
            start += region.size + (-region.size % 16)
        return tuple(places), [], b"".join(parts)
    placed = tuple([made.get(region.address) or _place(region, writer) for region in regions])
    return placed, writer.finish(), None


def _place(region: Region, writer: Writer) -> tuple[int, int]:
    if not region.size:
        return 0, 0
    view, start, block = writer.place(region.size)
    view[start : start + region.size] = region.view()
    return block, start


def region_of(data: bytes) -> Region:
    address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value
    assert address is not None
    return Region(address, len(data), data)
