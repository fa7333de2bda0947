"""Any value on its way to or from a worker of a pool: a pickle, with large flat memory beside it in an arena."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from .arena import Writer
from .codec import LONG_SKELETON, Layout, lay_out, region_of
from .packer import take_apart


class Parcel(NamedTuple):
    """What does not go into the message lies in these blocks."""

    layout: Layout
    blocks: list[tuple[int, int]]
    inline: bytes | None


Packed = bytes | Parcel


def wrap(value: object, writer: Writer) -> Packed:
    """What is not flat memory is pickled; a long pickle is laid beside it."""
    skeleton, leaves, regions = take_apart(value)
    if not regions and len(skeleton) <= LONG_SKELETON:
        return skeleton
    skeleton_size = 0
    if len(skeleton) > LONG_SKELETON:
        skeleton_size = len(skeleton)
        regions.append(region_of(skeleton))
        skeleton = b""
    try:
        places, blocks, inline = lay_out(regions, writer)
    except BaseException:
        writer.abandon()
        raise
    return Parcel(Layout(skeleton, tuple(leaves), places, skeleton_size), blocks, inline)


def unwrap(packed: Packed, lend: Callable[[int, int], memoryview]) -> Any:
    """The value again; its flat memory is the blocks themselves, writable, and keeps them."""


    if isinstance(packed, bytes):
        return pickle.loads(packed)
    layout, blocks, inline = packed
    if inline is not None:
        return layout.build((bytearray(inline),))
    return layout.build([lend(block, size) for block, size in blocks] or (bytearray(),))
