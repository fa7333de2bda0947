"""The flat memory inside a nested value: tensors, arrays and buffers, as regions of bytes that can be laid out
elsewhere.

A value is taken apart into a *skeleton* (a pickle of everything that is not flat memory) and *leaves*. A leaf says
how to make its object again from bytes that lie somewhere else; it knows no process and no arena.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy
import torch


class Region(NamedTuple):
    """Bytes to be carried, where they lie now, and the object that keeps them there."""

    address: int
    size: int
    owner: object

    def bytes(self) -> bytes:
        return ctypes.string_at(self.address, self.size)

    def view(self) -> memoryview:
        return memoryview((ctypes.c_char * self.size).from_address(self.address)).cast("B")


class TensorLeaf(NamedTuple):
    """A strided tensor. ``length`` elements from ``offset`` in a region; contiguous when ``stride`` is None."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    length: int
    region: int
    offset: int
    requires_grad: bool

    def rebuild(self, buffers: Sequence[Any], starts: Sequence[int]) -> torch.Tensor:
        if not self.length:
            return torch.empty(self.shape, dtype=self.dtype)
        offset = starts[self.region] + self.offset
        flat = torch.frombuffer(buffers[self.region], dtype=self.dtype, count=self.length, offset=offset)
        tensor = flat.view(self.shape) if self.stride is None else flat.as_strided(self.shape, self.stride)
        return tensor.requires_grad_() if self.requires_grad else tensor


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


Leaf = TensorLeaf | ArrayLeaf | BufferLeaf


def _raw_array(buffer: Any, start: int, size: int) -> numpy.ndarray[Any, Any]:
    # Through torch, because numpy.frombuffer keeps the memory behind a memoryview alive but not the memoryview
    # itself, and it is the memoryview's death that gives a block back.
    raw: numpy.ndarray[Any, Any] = torch.frombuffer(buffer, dtype=torch.uint8, count=size, offset=start).numpy()
    return raw


def of_tensors(tensors: Sequence[torch.Tensor], regions: list[Region]) -> list[TensorLeaf]:
    """Leaves for all tensors of one value; those that share a storage go on sharing it."""
    if len(tensors) == 1:
        return [_alone(tensors[0], regions)]
    by_storage: dict[int, list[int]] = {}
    for i, tensor in enumerate(tensors):
        storage = tensor.untyped_storage().data_ptr() if tensor.numel() else 0
        by_storage.setdefault(storage or -1 - i, []).append(i)  # an empty one has nothing to share, and no address
    if len(by_storage) == len(tensors):
        return [_alone(tensor, regions) for tensor in tensors]
    leaves: dict[int, TensorLeaf] = {}
    for members in by_storage.values():
        group = [tensors[i] for i in members]
        made = [_alone(group[0], regions)] if len(group) == 1 else _together(group, regions)
        leaves.update(zip(members, made, strict=True))
    return [leaves[i] for i in range(len(tensors))]


def _alone(tensor: torch.Tensor, regions: list[Region]) -> TensorLeaf:
    tensor = tensor.resolve_conj().resolve_neg() if tensor.is_conj() or tensor.is_neg() else tensor
    count, stride = tensor.numel(), None
    if not tensor.is_contiguous():
        span = _span(tensor)
        if span <= count:  # dense in another order, or expanded: carry the bytes as they are
            count, stride = span, tensor.stride()
        else:
            tensor = tensor.contiguous()
    leaf = TensorLeaf(tensor.dtype, tuple(tensor.shape), stride, count, len(regions), 0, tensor.requires_grad)
    regions.append(Region(tensor.data_ptr(), count * tensor.element_size(), tensor))
    return leaf


def _together(group: list[torch.Tensor], regions: list[Region]) -> list[TensorLeaf]:
    """Views of one storage: one region that spans them all."""
    group = [tensor.resolve_conj().resolve_neg() for tensor in group]
    if len({tensor.untyped_storage().data_ptr() for tensor in group}) > 1:
        return [_alone(tensor, regions) for tensor in group]
    begins = [tensor.data_ptr() for tensor in group]
    spans = [_span(tensor) for tensor in group]
    begin = min(begins)
    begin = max(group[0].untyped_storage().data_ptr(), begin - begin % 16)  # elements stay aligned as they are
    end = max(b + n * t.element_size() for b, n, t in zip(begins, spans, group, strict=True))
    leaves = [
        TensorLeaf(t.dtype, tuple(t.shape), t.stride(), n, len(regions), b - begin, t.requires_grad)
        for b, n, t in zip(begins, spans, group, strict=True)
    ]
    regions.append(Region(begin, end - begin, group))
    return leaves


def _span(tensor: torch.Tensor) -> int:
    """Elements from the first to the last that the tensor touches."""
    if not tensor.numel():
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


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
