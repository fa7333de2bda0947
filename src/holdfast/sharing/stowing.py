"""Puts arrays, tensors, long lists, dicts and strings into one shared memory, and makes them again from there."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy
import torch
from torch.nn import Parameter

from holdfast._transport.arrays import ArrayLeaf
from holdfast._transport.packer import describe
from holdfast._transport.tensors import TensorLeaf
from holdfast.errors import CannotShare

from .arrays import array_at
from .memory import Draft, Memory
from .packed import PackedList, PackedText, write_column, write_text
from .packed_dict import PackedDict, write_table
from .tensors import tensor_at

_FLAT = (numpy.ndarray, torch.Tensor)
Maker = Callable[[Memory], Any]


class Found(NamedTuple):
    """Something that is to be put into shared memory, and where in the value it was."""

    value: Any
    path: str


def stow(leaves: list[Found], readonly: bool) -> list[Any]:
    """One memory for all: a descriptor or two, whatever their number."""
    if not leaves:
        return []
    draft = Draft()
    try:
        makers = _write(draft, leaves)
        # What is packed cannot be written to anyway; sealed, it cannot be by accident.
        memory = draft.finish(readonly or not any(isinstance(leaf.value, _FLAT) for leaf in leaves))
    except BaseException:
        draft.abandon()
        raise
    return [make(memory) for make in makers]


def _write(draft: Draft, leaves: list[Found]) -> list[Maker]:
    flat = [i for i, leaf in enumerate(leaves) if isinstance(leaf.value, _FLAT)]
    described, regions = describe([leaves[i].value for i in flat])
    starts = []
    for region in regions:
        draft.align()
        starts.append(draft.append(region.view()))
    makers: dict[int, Maker] = {}
    for i, leaf in zip(flat, described, strict=True):
        if isinstance(leaf, ArrayLeaf):
            makers[i] = _of_array(leaf, starts)
        elif isinstance(leaf, TensorLeaf):
            makers[i] = _of_tensor(leaf, starts, leaves[i].value)
    return [makers.get(i) or _pack(draft, leaf) for i, leaf in enumerate(leaves)]


def _of_array(leaf: ArrayLeaf, starts: list[int]) -> Maker:
    strides = _strides(leaf.shape, leaf.dtype.itemsize, leaf.order)
    return lambda memory: array_at(memory, starts[leaf.region], leaf.dtype, leaf.shape, strides)


def _of_tensor(leaf: TensorLeaf, starts: list[int], original: torch.Tensor) -> Maker:
    stride = _strides(leaf.shape, 1, "C") if leaf.stride is None else leaf.stride
    start, is_parameter = starts[leaf.region] + leaf.offset, isinstance(original, Parameter)
    return lambda memory: tensor_at(memory, start, leaf.dtype, leaf.shape, stride, leaf.requires_grad, is_parameter)


def _strides(shape: Sequence[int], size: int, order: str) -> list[int]:
    """Of elements that lie side by side."""
    strides, step = [], size
    for length in shape if order == "F" else reversed(shape):
        strides.append(step)
        step *= max(1, length)
    return strides if order == "F" else strides[::-1]


def _pack(draft: Draft, leaf: Found) -> Maker:
    value = leaf.value
    try:
        if isinstance(value, dict):
            table = write_table(draft, value)
            return lambda memory: PackedDict(memory, table)
        if isinstance(value, (str, bytes)):
            text = write_text(draft, value)
            return lambda memory: PackedText(memory, text)
        column = write_column(draft, value)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        reason = f"an element cannot be pickled: {error}"
        raise CannotShare(leaf.path, type(value).__qualname__, reason) from error
    return lambda memory: PackedList(memory, column)
