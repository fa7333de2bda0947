"""The commonest batches, recognised without pickling: lists, tuples and dicts of plain tensors, however nested.

``signature`` names everything about such a batch but its bytes; two batches with the same signature have the same
layout. ``assembler`` makes the function that puts the tensors of one back into their structure.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch

from .tensors import TensorLeaf

Signature = tuple[Any, ...]
Assemble = Callable[[Sequence[Any]], Any]

_strided = torch.strided
_Tensor = torch.Tensor


def signature(value: Any, tensors: list[torch.Tensor]) -> Signature | None:
    """None when there is anything else in it; otherwise ``tensors`` are its tensors, in order."""
    kind = type(value)
    if kind is _Tensor:
        if (
            value.is_nested
            or not value.is_cpu
            or value.layout is not _strided
            or value.requires_grad
            or not value.is_contiguous()
            or value.is_conj()
            or value.is_neg()
            or value.is_quantized
            or not value.numel()
        ):
            return None
        tensors.append(value)
        return value.dtype, value.shape
    if kind is list or kind is tuple:
        parts: list[Any] = [kind]
        for member in value:
            part = signature(member, tensors)
            if part is None:
                return None
            parts.append(part)
        return tuple(parts)
    if kind is dict:
        parts = [dict]
        for key, member in value.items():
            part = signature(member, tensors)
            if part is None or type(key) is not str:
                return None
            parts.append((key, part))
        return tuple(parts)
    return None


def overlap(begins: list[int], sizes: list[int]) -> bool:
    """Do any two of these regions share a byte?"""
    if len(begins) < 2:
        return False
    order = sorted(range(len(begins)), key=begins.__getitem__)
    return any(begins[a] + sizes[a] > begins[b] for a, b in itertools.pairwise(order))


def assembler(shape: Signature | None, leaves: Sequence[Any], places: Sequence[tuple[int, int]]) -> Assemble | None:
    """A function from the blocks of a batch to the batch; None when only the skeleton can tell how."""
    if shape is None or not all(type(leaf) is TensorLeaf for leaf in leaves):
        return None
    parts = [(places[leaf.region][0], places[leaf.region][1] + leaf.offset, leaf) for leaf in leaves]
    plain = [(block, start, leaf.dtype, leaf.length, leaf.shape) for block, start, leaf in parts]
    frombuffer, arrange = torch.frombuffer, _arranger(shape)

    def assemble(buffers: Sequence[Any]) -> Any:
        tensors = [
            frombuffer(buffers[block], dtype=dtype, count=count, offset=start).reshape(size)
            for block, start, dtype, count, size in plain
        ]
        return arrange(tensors)

    return assemble


def inline_assembler(
    shape: Signature | None, leaves: Sequence[Any], places: Sequence[tuple[int, int]]
) -> Assemble | None:
    """The same for the one inline buffer, which nobody has to track: through numpy it takes half the time."""
    if shape is None or not all(type(leaf) is TensorLeaf and leaf.dtype in _NUMPY for leaf in leaves):
        return None
    plain = [(leaf.shape, _NUMPY[leaf.dtype], places[leaf.region][1] + leaf.offset) for leaf in leaves]
    from_numpy, ndarray, arrange = torch.from_numpy, numpy.ndarray, _arranger(shape)

    def assemble(buffers: Sequence[Any]) -> Any:
        buffer = buffers[0]
        return arrange([from_numpy(ndarray(size, dtype, buffer, start)) for size, dtype, start in plain])

    return assemble


def _arranger(shape: Signature) -> Callable[[list[Any]], Any]:
    if shape[0] is list and all(isinstance(part[0], torch.dtype) for part in shape[1:]):
        return _as_it_is
    return lambda tensors: _arrange(shape, iter(tensors))


def _as_it_is(tensors: list[Any]) -> Any:
    return tensors


def _arrange(shape: Signature, tensors: Any) -> Any:
    kind, *parts = shape
    if kind is list:
        return [_arrange(part, tensors) for part in parts]
    if kind is tuple:
        return tuple(_arrange(part, tensors) for part in parts)
    if kind is dict:
        return {key: _arrange(part, tensors) for key, part in parts}
    return next(tensors)


_NUMPY: dict[torch.dtype, numpy.dtype[Any]] = {
    torch.from_numpy(numpy.empty(0, kind)).dtype: numpy.dtype(kind)
    for kind in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "?", "c8", "c16")
}
