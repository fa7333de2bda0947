"""The flat memory inside a nested value: arrays and buffers, as regions of bytes that can be laid out elsewhere.

A value is taken apart into a *skeleton* (a pickle of everything that is not flat memory) and *leaves*. A leaf says
how to make its object again from bytes that lie somewhere else; it knows no process and no arena. Tensors are leaves
too, and have a module of their own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy


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


class ArrayLeaf(NamedTuple):
    """A numpy array in C or Fortran order."""

    dtype: numpy.dtype[Any]
    shape: tuple[int, ...]
    order: str
    size: int
    region: int

    def rebuild(self, buffers: Sequence[Any], starts: Sequence[int]) -> numpy.ndarray[Any, Any]:
        if not self.size:
            return numpy.empty(self.shape, dtype=self.dtype)
        raw = _raw_array(buffers[self.region], starts[self.region], self.size)
        return raw.view(self.dtype).reshape(self.shape, order=self.order)  # type: ignore[call-overload, no-any-return]


class BufferLeaf(NamedTuple):
    """An out-of-band buffer of some other type that pickles with protocol 5."""

    size: int
    region: int
    readonly: bool

    def rebuild(self, buffers: Sequence[Any], starts: Sequence[int]) -> object:
        if not self.size:
            return bytearray()
        raw = _raw_array(buffers[self.region], starts[self.region], self.size)
        raw.flags.writeable = not self.readonly
        return raw


class _Held:
    """Memory behind a buffer, as numpy takes it. ``numpy.frombuffer`` keeps the memory behind a memoryview alive but
    not the memoryview itself, and it is the memoryview's death that gives a block back."""

    __slots__ = "__array_interface__", "_buffer"

    def __init__(self, buffer: Any, start: int, size: int) -> None:
        address, _ = numpy.frombuffer(buffer, numpy.uint8).__array_interface__["data"]
        self._buffer = buffer
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (address + start, False)}


def _raw_array(buffer: Any, start: int, size: int) -> numpy.ndarray[Any, Any]:
    return numpy.asarray(_Held(buffer, start, size))


def of_array(array: numpy.ndarray[Any, Any], regions: list[Region]) -> ArrayLeaf:
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    if order == "C":
        array = numpy.ascontiguousarray(array).reshape(array.shape)
    leaf = ArrayLeaf(array.dtype, array.shape, order, array.nbytes, len(regions))
    regions.append(Region(array.__array_interface__["data"][0], array.nbytes, array))
    return leaf


def of_buffer(buffer: memoryview, regions: list[Region]) -> BufferLeaf:
    array = numpy.frombuffer(buffer, dtype=numpy.uint8) if buffer.nbytes else numpy.empty(0, numpy.uint8)
    leaf = BufferLeaf(buffer.nbytes, len(regions), buffer.readonly)
    regions.append(Region(array.__array_interface__["data"][0], buffer.nbytes, (array, buffer)))
    return leaf
