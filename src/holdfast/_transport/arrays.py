"""Arrays in values that are taken apart, and other buffers, which are arrays of bytes on their way.

Imported as soon as numpy is there, and by nothing that has to do without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from .leaves import BufferLeaf, Region
from .packer import Packer, lays_out, takes


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
        raw = raw_array(buffers[self.region], starts[self.region], self.size)
        return raw.view(self.dtype).reshape(self.shape, order=self.order)  # type: ignore[call-overload, no-any-return]


class _Held:
    """Memory behind a buffer, as numpy takes it. ``numpy.frombuffer`` keeps the memory behind a memoryview alive but
    not the memoryview itself, and it is the memoryview's death that gives a block back."""

    __slots__ = "__array_interface__", "_buffer"

    def __init__(self, buffer: Any, start: int, size: int) -> None:
        address, _ = numpy.frombuffer(buffer, numpy.uint8).__array_interface__["data"]
        self._buffer = buffer
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (address + start, False)}


def raw_array(buffer: Any, start: int, size: int) -> numpy.ndarray[Any, Any]:
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


def _reduce_array(packer: Packer, array: numpy.ndarray[Any, Any]) -> Any:
    return NotImplemented if array.dtype.hasobject else packer.leave_out(array)


takes(numpy.ndarray, _reduce_array)
lays_out(numpy.ndarray, lambda arrays, regions: [of_array(array, regions) for array in arrays])
