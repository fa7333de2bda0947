"""Long lists and strings, packed: the bytes lie in shared memory once, and an element is made when it is asked for.

A list of three million paths is three million objects, of which each worker comes to have its own copy: by unpickling
them, or, as a fork, by reading them, as that writes their reference counts. Packed it is two arrays.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, overload

import numpy

from .locks import Lock
from .memory import Draft, Memory

CHUNK = 1 << 16  # elements that are encoded at a time
_INTEGERS = numpy.iinfo(numpy.int64)
_NUMBERS: dict[type, str] = {bool: "?", int: "q", float: "d"}
_WIDTHS = {"latin-1": 1, "utf-16-le": 2, "utf-32-le": 4}


class Column(NamedTuple):
    """Where the elements of a list lie. ``kind``: a number's format, or how bytes become an element."""

    kind: str
    length: int
    data: int
    size: int
    ends: int = 0  # where it is noted where each element ends: eight bytes for each


def write_column(draft: Draft, values: Sequence[Any]) -> Column:
    """Pack the elements; an exception of pickle's for one that cannot be."""
    kinds = set(map(type, values))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind in _NUMBERS and (kind is not int or _INTEGERS.min <= min(values) <= max(values) <= _INTEGERS.max):
        numbers = numpy.array(values, _NUMBERS[kind])
        draft.align()
        return Column(_NUMBERS[kind], len(values), draft.append(numbers), numbers.nbytes)
    name = kind.__name__ if kind in (str, bytes) else "pickle"
    start, lengths = draft.align(), numpy.empty(len(values) + 1, numpy.int64)
    lengths[0] = 0
    elements, place = iter(values), 1
    while encoded := [_ENCODE[name](value) for value in islice(elements, CHUNK)]:
        lengths[place : place + len(encoded)] = list(map(len, encoded))
        place += len(encoded)
        draft.append(b"".join(encoded))
    ends = lengths.cumsum()
    draft.align()
    return Column(name, len(values), start, int(ends[-1]), draft.append(ends))


def _encode_text(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


def _encode_any(value: Any) -> bytes:
    encoded = pickle.dumps(value, 5)
    if b"__main__" in encoded:
        _Look(io.BytesIO(encoded)).load()
    return encoded


class _Look(pickle.Unpickler):
    """Refuses what another process could not load: each has a main program of its own."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "__main__":
            raise pickle.PicklingError(f"{name} is defined in the main program")
        return super().find_class(module, name)


_ENCODE: dict[str, Callable[[Any], bytes]] = {"str": _encode_text, "bytes": bytes, "pickle": _encode_any}


def reader(memory: Memory, column: Column) -> Callable[[int], Any]:
    """The function that makes the element with a number. It keeps the memory."""
    whole = memoryview(memory.array())  # type: ignore[arg-type]
    data = whole[column.data : column.data + column.size]
    if len(column.kind) == 1:
        return data.cast(column.kind).__getitem__  # type: ignore[call-overload, no-any-return]
    ends = whole[column.ends : column.ends + 8 * (column.length + 1)].cast("q")
    if column.kind == "str":
        return lambda i: str(data[ends[i] : ends[i + 1]], "utf-8", "surrogatepass")
    if column.kind == "bytes":
        return lambda i: bytes(data[ends[i] : ends[i + 1]])
    return lambda i: pickle.loads(data[ends[i] : ends[i + 1]])


class PackedList(Sequence[Any]):
    """A list that cannot be changed, in shared memory. An element that is itself a list or dict comes as a copy."""

    __slots__ = ("__weakref__", "_column", "_element", "_memory", "_places")

    def __init__(self, memory: Memory, column: Column, places: range | None = None) -> None:
        self._memory, self._column = memory, column
        self._places = range(column.length) if places is None else places
        self._element = reader(memory, column)

    @property
    def lock(self) -> Lock:
        """One for all that was shared by one call of ``share``."""
        return self._memory.lock

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> PackedList: ...
    def __getitem__(self, index: Any) -> Any:
        place = self._places[index]
        return self._element(place) if type(place) is int else PackedList(self._memory, self._column, place)

    def __iter__(self) -> Iterator[Any]:
        return map(self._element, self._places)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, tuple, PackedList)):
            return NotImplemented
        return len(self) == len(other) and all(mine == its for mine, its in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Iterable[Any]) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: Iterable[Any]) -> list[Any]:
        return [*other, *self]

    def __repr__(self) -> str:
        return abridged("PackedList([", map(repr, self), len(self), "])")

    def __reduce__(self) -> Any:
        return PackedList, (self._memory, self._column, self._places)

    def __deepcopy__(self, memo: dict[int, Any]) -> PackedList:
        return self


class Text(NamedTuple):
    """Where a string lies. ``codec`` has as many bytes for each character; none for ``bytes``."""

    codec: str
    data: int
    length: int


def write_text(draft: Draft, value: str | bytes) -> Text:
    if isinstance(value, bytes):
        return Text("", draft.append(value), len(value))
    highest = max(map(max, (value[i : i + CHUNK] for i in range(0, len(value), CHUNK))))
    codec = "latin-1" if highest < "\u0100" else "utf-16-le" if highest < "\ud800" else "utf-32-le"
    draft.align()
    start = draft.append(b"")
    for i in range(0, len(value), CHUNK):
        draft.append(value[i : i + CHUNK].encode(codec, "surrogatepass"))
    return Text(codec, start, len(value))


class PackedText(Sequence[Any]):
    """A long string, or bytes, in shared memory. Parts of it are strings, or bytes; ``str(x)`` and ``bytes(x)`` are a
    copy of all."""

    __slots__ = ("__weakref__", "_bytes", "_memory", "_text")

    def __init__(self, memory: Memory, text: Text) -> None:
        self._memory, self._text = memory, text
        width = _WIDTHS.get(text.codec, 1)
        self._bytes = memoryview(memory.array())[text.data : text.data + width * text.length]  # type: ignore[arg-type]

    @property
    def lock(self) -> Lock:
        """One for all that was shared by one call of ``share``."""
        return self._memory.lock

    def __len__(self) -> int:
        return self._text.length

    def __getitem__(self, index: Any) -> Any:
        place = range(self._text.length)[index]
        if isinstance(place, int):
            return self._part(place, place + 1) if self._text.codec else self._bytes[place]
        if place.step != 1:
            return self._part(0, len(self))[index]
        return self._part(place.start, max(place.start, place.stop))

    def _part(self, start: int, stop: int) -> Any:
        codec = self._text.codec
        if not codec:
            return bytes(self._bytes[start:stop])
        width = _WIDTHS[codec]
        return str(self._bytes[width * start : width * stop], codec, "surrogatepass")

    def __contains__(self, part: Any) -> bool:
        return part in self._part(0, len(self))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedText):
            return bool(self[:] == other[:])
        return bool(self[:] == other) if isinstance(other, (str, bytes)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self[:])

    def __str__(self) -> str:
        return self[:] if self._text.codec else repr(self)

    def __bytes__(self) -> bytes:
        if self._text.codec:
            raise TypeError("string argument without an encoding")
        return bytes(self._bytes)

    def __repr__(self) -> str:
        return f"PackedText({self[:40]!r}{'...' if len(self) > 40 else ''})"

    def __reduce__(self) -> Any:
        return PackedText, (self._memory, self._text)

    def __deepcopy__(self, memo: dict[int, Any]) -> PackedText:
        return self


def abridged(begin: str, parts: Iterable[str], count: int, end: str, shown: int = 6) -> str:
    """As far as one wants to read it."""
    first = islice(parts, shown)
    return begin + ", ".join(chain(first, [f"... {count:,} in all"] if count > shown else [])) + end
