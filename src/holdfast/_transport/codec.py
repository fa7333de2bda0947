"""Batches through the arena: encoded by the worker, views of the arena for the trainer.

What is the same for every batch (skeleton, dtypes, shapes, places) is a *layout*: it is sent once and numbered, and a
batch is then a layout number and the blocks it lies in. A batch of a few hundred bytes travels inside the message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from .arena import Writer
from .layout import LONG_SKELETON, Layout, lay_out, region_of
from .leaves import Region
from .packer import take_apart
from .structure import Signature, assembler, inline_assembler, overlap, signature
from .tensors import TensorLeaf

KNOWN_LAYOUTS = 256


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
        self._known: dict[Any, int] = {}
        self._made: dict[int, tuple[int, int]] = {}  # address -> place, of tensors that lie in the arena already

    def tensor(self, shape: tuple[int, ...], dtype: torch.dtype, count: int, size: int) -> torch.Tensor:
        """An uninitialised tensor in the arena, for the batch that is being made."""
        view, start, block = self._writer.place(size)
        tensor = torch.frombuffer(view, dtype=dtype, count=count, offset=start).reshape(shape)
        self._made[tensor.data_ptr()] = block, start
        return tensor

    def encode(self, value: object) -> Encoded:
        """Lay out ``value``; what of it is not in the arena yet is copied there."""
        tensors: list[torch.Tensor] = []
        try:
            structure = signature(value, tensors)
        except RecursionError:
            structure = None  # a structure that contains itself, which pickle knows how to take
        encoded = self._simple(value, structure, tensors) if structure is not None else self._any(value)
        self._made.clear()
        return encoded

    def abandon(self) -> None:
        """The batch failed on the way: forget what was laid out for it."""
        self._writer.abandon()
        self._made.clear()

    def _simple(self, value: object, structure: Signature, tensors: list[torch.Tensor]) -> Encoded:
        """Plain tensors in a plain structure: no pickling once the layout is known."""
        try:
            begins = [tensor.data_ptr() for tensor in tensors]
        except RuntimeError:  # shared for reading only: torch has no pointer for us
            return self._any(value)
        sizes = [tensor.nbytes for tensor in tensors]
        if overlap(begins, sizes):
            return self._any(value)
        regions = [Region(begin, size, value) for begin, size in zip(begins, sizes, strict=True)]
        places, blocks, inline = lay_out(regions, self._writer, self._made)
        number = self._known.get((structure, places))
        if number is not None:
            return Encoded(number, None, blocks, inline)
        skeleton, _, _ = take_apart(value)
        # Not the leaves of the skeleton: those put views of one storage into one region, even when they do not overlap.
        leaves = tuple(TensorLeaf(t.dtype, tuple(t.shape), None, t.numel(), i, 0, False) for i, t in enumerate(tensors))
        layout = Layout(skeleton, leaves, places, 0, structure)
        return self._numbered((structure, places), layout, blocks, inline)

    def _any(self, value: object) -> Encoded:
        skeleton, leaves, regions = take_apart(value)
        skeleton_size = 0
        if len(skeleton) > LONG_SKELETON:
            skeleton_size = len(skeleton)
            regions.append(region_of(skeleton))
            skeleton = b""
        places, blocks, inline = lay_out(regions, self._writer, self._made)
        layout = Layout(skeleton, tuple(leaves), places, skeleton_size)
        if skeleton_size:
            return Encoded(-1, layout, blocks, inline)
        return self._numbered(layout, layout, blocks, inline)

    def _numbered(self, key: Any, layout: Layout, blocks: list[tuple[int, int]], inline: bytes | None) -> Encoded:
        number = self._known.get(key)
        if number is not None:
            return Encoded(number, None, blocks, inline)
        if len(self._known) >= KNOWN_LAYOUTS:
            return Encoded(-1, layout, blocks, inline)
        self._known[key] = number = len(self._known)
        return Encoded(number, layout, blocks, inline)


class Decoder:
    """The trainer's side, one for each life of a worker: remembers the layouts that this life has sent."""

    def __init__(self, lend: Callable[[int, int], memoryview]) -> None:
        self._lend = lend
        self._builders: dict[int, Callable[[Sequence[Any]], Any]] = {}

    def learn(self, encoded: Encoded) -> Callable[[Sequence[Any]], Any]:
        """The function that makes this batch from its buffers."""
        if encoded.layout is None:
            return self._builders[encoded.number]
        layout = encoded.layout
        make = inline_assembler if encoded.inline is not None else assembler
        build = make(layout.structure, layout.leaves, layout.places) or layout.build
        if encoded.number >= 0:
            self._builders[encoded.number] = build
        return build

    def decode(self, build: Callable[[Sequence[Any]], Any], blocks: list[tuple[int, int]], inline: bytes | None) -> Any:
        if inline is not None:
            return build((bytearray(inline),))
        return build([self._lend(block, size) for block, size in blocks] or (bytearray(),))
