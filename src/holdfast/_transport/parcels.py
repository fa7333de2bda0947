"""Any value on its way to or from a worker of a pool: a pickle, with large flat memory beside it in an arena."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .arena import Writer
from .layout import LONG_SKELETON, Layout, lay_out, region_of
from .packer import PROTOCOL, Packer, Taken, describe


class Parcel(NamedTuple):
    """What does not go into the message lies in these blocks."""

    layout: Layout
    blocks: list[tuple[int, int]]
    inline: bytes | None


Packed = bytes | Parcel


def wrap(value: object, writer: Writer) -> Packed:
    """What is not flat memory is pickled; a long pickle is laid beside it."""
    return pack_up(value, writer)[0]


def pack_up(value: object, writer: Writer, packer: type[Packer] = Packer) -> tuple[Packed, bool]:
    """The same, and whether there is nothing in it but built-in types."""
    found: Sequence[Any] = ()
    plain = is_plain(value)
    if plain:
        skeleton = pickle.dumps(value, protocol=PROTOCOL)
    else:
        taken = Taken()
        pickler = packer(taken)
        pickler.dump(value)
        skeleton, found, plain = taken.getvalue(), taken.found, pickler.plain
    if not found and len(skeleton) <= LONG_SKELETON:
        return skeleton, plain
    return _laid_out(skeleton, found, writer), plain


def _laid_out(skeleton: bytes, found: Sequence[Any], writer: Writer) -> Parcel:
    leaves, regions = describe(found)
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


def is_plain(items: Any) -> bool:
    """Whether it is a list of one plain value, or of the plain arguments of one call: pickle alone will do.

    To look costs a tenth of what it costs to make a pickler that looks.
    """
    if type(items) is not list or len(items) != 1:
        return False
    item = items[0]
    if type(item) in _PLAIN:
        return True
    if type(item) is not tuple or len(item) != 2 or type(item[0]) is not tuple or type(item[1]) is not dict:
        return False
    args, kwargs = item
    return _PLAIN.issuperset(map(type, args)) and (not kwargs or _PLAIN.issuperset(map(type, kwargs.values())))


_PLAIN = frozenset({int, float, complex, bool, type(None), str, bytes})


def unwrap(packed: Packed, lend: Callable[[int, int], memoryview]) -> Any:
    """The value again; its flat memory is the blocks themselves, writable, and keeps them."""

    if isinstance(packed, bytes):
        return pickle.loads(packed)
    layout, blocks, inline = packed
    if inline is not None:
        return layout.build((bytearray(inline),))
    return layout.build([lend(block, size) for block, size in blocks] or (bytearray(),))
