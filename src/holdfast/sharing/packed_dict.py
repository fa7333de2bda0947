"""Long dicts, packed: keys and values as lists, and a table that leads from a key to its place.

Python's own hash of a string differs from process to process, so the table has one of its own. It lists the places by
the last bits of their keys' hashes; a key is then looked for among the few that have the same.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from numbers import Number
from typing import Any, NamedTuple
from zlib import crc32

import numpy

from .locks import Lock
from .memory import Draft, Memory
from .packed import Column, PackedList, abridged, write_column

_PRIME = 1_000_003


class Table(NamedTuple):
    """Where a dict lies. ``starts`` has, for each value of the last bits, where in ``order`` its places begin."""

    keys: Column
    values: Column
    mask: int
    starts: int
    order: int


def stable_hash(key: Any) -> int:
    """The same in every process, and for keys that are equal; ``TypeError`` for kinds that have none."""
    if isinstance(key, str):
        return crc32(key.encode("utf-8", "surrogatepass"))
    if isinstance(key, Number):
        return hash(key)
    if isinstance(key, bytes):
        return crc32(key)
    if isinstance(key, tuple):
        mixed = len(key)
        for part in key:
            mixed = (mixed * _PRIME ^ stable_hash(part)) & 0xFFFFFFFFFFFF
        return mixed
    if key is None:
        return 0
    raise TypeError(f"a key of type {type(key).__name__} has no hash that is the same in every process")


def write_table(draft: Draft, values: dict[Any, Any]) -> Table:
    count = len(values)
    mask = (1 << count.bit_length()) - 1
    hashes = numpy.fromiter((stable_hash(key) & mask for key in values), numpy.int64, count)
    order = numpy.argsort(hashes, kind="stable")
    starts = numpy.searchsorted(hashes[order], numpy.arange(mask + 2))
    keys, contents = write_column(draft, list(values)), write_column(draft, list(values.values()))
    places = []
    for numbers in (starts, order):
        draft.align()
        places.append(draft.append(numbers.astype(numpy.int32 if count < 1 << 31 else numpy.int64)))
    return Table(keys, contents, mask, *places)


class PackedDict(Mapping[Any, Any]):
    """A dict that cannot be changed, in shared memory, in the order it had. A value that is itself a list or dict comes
    as a copy."""

    __slots__ = ("__weakref__", "_keys", "_memory", "_order", "_starts", "_table", "_values")

    def __init__(self, memory: Memory, table: Table) -> None:
        self._memory, self._table = memory, table
        self._keys, self._values = PackedList(memory, table.keys), PackedList(memory, table.values)
        size, format = (4, "i") if table.keys.length < 1 << 31 else (8, "q")
        whole = memoryview(memory.array())  # type: ignore[arg-type]
        self._starts = whole[table.starts : table.starts + size * (table.mask + 2)].cast(format)  # type: ignore[call-overload]
        self._order = whole[table.order : table.order + size * table.keys.length].cast(format)  # type: ignore[call-overload]

    @property
    def lock(self) -> Lock:
        """One for all that was shared by one call of ``share``."""
        return self._memory.lock

    def __getitem__(self, key: Any) -> Any:
        place = self._place(key)
        if place is None:
            raise KeyError(key)
        return self._values._element(place)

    def __contains__(self, key: Any) -> bool:
        return self._place(key) is not None

    def _place(self, key: Any) -> int | None:
        try:
            bits = stable_hash(key) & self._table.mask
        except TypeError:
            hash(key)  # as a dict would, refuse what cannot be a key
            return None
        element = self._keys._element
        for i in range(self._starts[bits], self._starts[bits + 1]):
            place: int = self._order[i]
            if element(place) == key:
                return place
        return None

    def __len__(self) -> int:
        return self._table.keys.length

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys)

    def values(self) -> PackedList:  # type: ignore[override]
        return self._values

    def items(self) -> ItemsView[Any, Any]:
        return _Items(self)

    def __repr__(self) -> str:
        parts = (f"{key!r}: {value!r}" for key, value in self.items())
        return abridged("PackedDict({", parts, len(self), "})")

    def __reduce__(self) -> Any:
        return PackedDict, (self._memory, self._table)

    def __deepcopy__(self, memo: dict[int, Any]) -> PackedDict:
        return self


class _Items(ItemsView[Any, Any]):
    """In order, without a look at the table for each."""

    _mapping: PackedDict

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return zip(self._mapping._keys, self._mapping._values, strict=True)
