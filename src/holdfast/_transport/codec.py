"""Batches through the arena: encoded by the worker, views of the arena for the trainer.

What is the same for every batch (skeleton, dtypes, shapes, places) is a *layout*: it is sent once and numbered, and a
batch is then a layout number and the blocks it lies in. A batch of a few hundred bytes travels inside the message.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from .arena import Writer
from .leaves import BufferLeaf, Leaf, Region
from .packer import put_together, take_apart

INLINE = 2048  # bytes up to which a copy through the pipe is cheaper than a block's way there and back
LONG_SKELETON = 1 << 15
KNOWN_LAYOUTS = 256


class Layout(NamedTuple):
    """How to make a batch from its blocks. ``places`` says for each region: which block, where in it."""

    skeleton: bytes  # empty when it was so long that it lies in the last region
    leaves: tuple[Leaf, ...]
    places: tuple[tuple[int, int], ...]
    skeleton_size: int = 0

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


class Encoded(NamedTuple):
    """One batch, ready to be announced. ``layout`` is given the first time its number is used."""

    number: int
    layout: Layout | None
    blocks: list[tuple[int, int]]
    inline: bytes | None


class Encoder:
    """The worker's side. Not thread-safe: one batch at a time, ``tensor`` and ``encode`` in turn."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._known: dict[Layout, int] = {}
        self._made: dict[int, tuple[int, int]] = {}  # address -> place, of tensors that lie in the arena already

    def tensor(self, shape: tuple[int, ...], dtype: torch.dtype, count: int, size: int) -> torch.Tensor:
        """An uninitialised tensor in the arena, for the batch that is being made."""
        mapping, start, block, offset = self._writer.place(size)
        tensor = torch.frombuffer(mapping, dtype=dtype, count=count, offset=start).view(shape)
        self._made[tensor.data_ptr()] = block, offset
        return tensor

    def encode(self, value: object) -> Encoded:
        """Lay out ``value``; what of it is not in the arena yet is copied there."""
        skeleton, leaves, regions = take_apart(value)
        skeleton_size = 0
        if len(skeleton) > LONG_SKELETON:
            skeleton_size = len(skeleton)
            regions.append(_region_of(skeleton))
            skeleton = b""
        inline = self._inline(regions)
        places = self._places_inline(regions) if inline is not None else [self._place(region) for region in regions]
        layout = Layout(skeleton, tuple(leaves), tuple(places), skeleton_size)
        blocks = self._writer.finish()
        self._made.clear()
        return self._numbered(layout, blocks, inline)

    def abandon(self) -> None:
        """The batch failed on the way: forget what was laid out for it."""
        self._writer.abandon()
        self._made.clear()

    def _numbered(self, layout: Layout, blocks: list[tuple[int, int]], inline: bytes | None) -> Encoded:
        number = self._known.get(layout)
        if number is not None:
            return Encoded(number, None, blocks, inline)
        if layout.skeleton_size or len(self._known) >= KNOWN_LAYOUTS:
            return Encoded(-1, layout, blocks, inline)
        self._known[layout] = number = len(self._known)
        return Encoded(number, layout, blocks, inline)

    def _inline(self, regions: list[Region]) -> bytes | None:
        if self._made or sum(region.size for region in regions) > INLINE:
            return None
        return b"".join([region.bytes().ljust(-(-region.size // 16) * 16, b"\0") for region in regions])

    def _places_inline(self, regions: list[Region]) -> list[tuple[int, int]]:
        places, start = [], 0
        for region in regions:
            places.append((0, start))
            start += -(-region.size // 16) * 16
        return places

    def _place(self, region: Region) -> tuple[int, int]:
        made = self._made.get(region.address)
        if made is not None:
            return made
        if not region.size:
            return 0, 0
        mapping, start, block, offset = self._writer.place(region.size)
        _copy(region, mapping, start)
        return block, offset


class Decoder:
    """The trainer's side, one for each life of a worker: remembers the layouts that this life has sent."""

    def __init__(self, lend: Callable[[int, int], memoryview]) -> None:
        self._lend = lend
        self._layouts: dict[int, Layout] = {}

    def learn(self, encoded: Encoded) -> Layout:
        if encoded.layout is None:
            return self._layouts[encoded.number]
        if encoded.number >= 0:
            self._layouts[encoded.number] = encoded.layout
        return encoded.layout

    def decode(self, layout: Layout, blocks: list[tuple[int, int]], inline: bytes | None) -> Any:
        if inline is not None:
            return layout.build((bytearray(inline),))
        return layout.build([self._lend(block, size) for block, size in blocks] or (bytearray(),))


def _region_of(data: bytes) -> Region:
    import ctypes

    address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value
    assert address is not None
    return Region(address, len(data), data)


def _copy(region: Region, mapping: mmap.mmap, start: int) -> None:
    mapping[start : start + region.size] = region.view()
