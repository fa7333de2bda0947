"""Any value on its way to or from a worker of a pool: a pickle, with large flat memory beside it in an arena."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

from .arena import Writer
from .codec import LONG_SKELETON, Layout, lay_out, region_of
from .packer import PROTOCOL, Packer, Taken, describe


class Parcel(NamedTuple):
    """What does not go into the message lies in these blocks."""

    layout: Layout
    blocks: list[tuple[int, int]]
    inline: bytes | None


Packed = bytes | Parcel


def wrap(value: object, writer: Writer) -> Packed:
    """What is not flat memory is pickled; a long pickle is laid beside it."""
    if is_plain(value):
        return pickle.dumps(value, protocol=PROTOCOL)
    taken = Taken()
    Packer(taken).dump(value)
    skeleton = taken.getvalue()
    if not taken.found and len(skeleton) <= LONG_SKELETON:
        return skeleton
    leaves, regions = describe(taken.found)
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


def is_plain(value: Any, depth: int = 3) -> bool:
    """Whether it is a few plain values in plain containers, which need no more than pickle. A look at each costs less
    than to make a pickler that looks."""
    kind = type(value)
    if kind in _PLAIN:
        return kind not in _SIZED or len(value) < _SHORT
    if not depth or kind not in _CONTAINERS or len(value) > _FEW:
        return False
    if kind is dict:
        return not value or (_PLAIN.issuperset(map(type, value)) and is_plain([*value.values()], depth))
    for each in value:  # noqa: SIM110  # all() takes twice as long for so few
        if not is_plain(each, depth - 1):
            return False
    return True


_PLAIN = frozenset({int, float, complex, bool, type(None), str, bytes})
_SIZED = frozenset({str, bytes})
_CONTAINERS = frozenset({tuple, list, dict})
_FEW, _SHORT = 8, 1024


def unwrap(packed: Packed, lend: Callable[[int, int], memoryview]) -> Any:
    """The value again; its flat memory is the blocks themselves, writable, and keeps them."""

    if isinstance(packed, bytes):
        return pickle.loads(packed)
    layout, blocks, inline = packed
    if inline is not None:
        return layout.build((bytearray(inline),))
    return layout.build([lend(block, size) for block, size in blocks] or (bytearray(),))
