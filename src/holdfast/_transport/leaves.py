"""The flat memory inside a nested value, as regions of bytes that can be laid out elsewhere.

A value is taken apart into a *skeleton* (a pickle of everything that is not flat memory) and *leaves*. A leaf says
how to make its object again from bytes that lie somewhere else; it knows no process and no arena. Those of tensors and
of arrays have modules of their own, for processes that do without torch and numpy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol


class Region(NamedTuple):
    """Bytes to be carried, where they lie now, and the object that keeps them there."""

    address: int
    size: int
    owner: object

    def bytes(self) -> bytes:
        return ctypes.string_at(self.address, self.size)

    def view(self) -> memoryview:
        return memoryview((ctypes.c_char * self.size).from_address(self.address)).cast("B")


class Leaf(Protocol):
    """How to make one object from its region."""

    def rebuild(self, buffers: Sequence[Any], starts: Sequence[int]) -> Any: ...


class BufferLeaf(NamedTuple):
    """An out-of-band buffer of some other type that pickles with protocol 5."""

    size: int
    region: int
    readonly: bool

    def rebuild(self, buffers: Sequence[Any], starts: Sequence[int]) -> object:
        if not self.size:
            return bytearray()
        from .arrays import raw_array

        raw = raw_array(buffers[self.region], starts[self.region], self.size)
        raw.flags.writeable = not self.readonly
        return raw
