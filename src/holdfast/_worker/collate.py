"""torch's default collate, with the stacked tensors and arrays written straight into the arena.

torch's own code walks the structure of a sample, with all its rules; only the functions that stack tensors and arrays
are others, put into torch's map of collate functions in this worker. So a user's collate_fn that calls
``default_collate`` gains too. The two commonest samples, a tensor and a tuple of tensors, arrays and numbers, skip the
walk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import torch
from torch.utils.data._utils.collate import collate, default_collate, default_collate_fn_map

from holdfast._transport.codec import INLINE

from .collate_types import OURS, STOCK

NewTensor = Callable[[tuple[int, ...], torch.dtype, int, int], torch.Tensor]
_SHARED = ("holdfast.sharing.tensors", "holdfast.sharing.arrays")  # by name: hardly any worker has to import them
_DTYPES = {
    numpy.dtype(kind): torch.from_numpy(numpy.empty(0, kind)).dtype
    for kind in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "c16")
}


def collate_into(new_tensor: NewTensor, added: dict[Any, Callable[..., Any]]) -> Callable[[Any], Any]:
    """Make this process collate into memory from ``new_tensor``; returns what stands for ``default_collate``."""
    ours: dict[Any, Callable[..., Any]] = {
        torch.Tensor: _stacker(new_tensor),
        numpy.ndarray: _array_stacker(new_tensor),
    }
    if torch.Tensor not in added:  # which may be meant for what arrays are made into, too
        default_collate_fn_map.update(ours)
        OURS.extend(ours.values())
    default_collate_fn_map.update(added)
    return default_collate if added else _quick(ours[torch.Tensor], ours[numpy.ndarray])


def _stacker(new_tensor: NewTensor) -> Callable[..., torch.Tensor]:
    stock = STOCK[torch.Tensor]

    def stack(batch: Any, *, collate_fn_map: Any = None) -> torch.Tensor:
        elem = batch[0]
        if elem.is_nested or elem.layout is not torch.strided:
            return stock(batch, collate_fn_map=collate_fn_map)  # type: ignore[no-any-return]  # it refuses, in torch's words
        count = elem.numel() * len(batch)
        size = count * elem.element_size()
        if size <= INLINE or not _is_plain(type(elem)) or elem.device.type != "cpu" or _mixed(batch, elem):
            return torch.stack(batch, 0)
        return torch.stack(batch, 0, out=new_tensor((len(batch), *elem.shape), elem.dtype, count, size))

    return stack


def _is_plain(kind: type) -> bool:
    """A tensor or array, shared or not; other classes may have rules of their own."""
    return kind is torch.Tensor or kind is numpy.ndarray or kind.__module__ in _SHARED


def _mixed(batch: Any, elem: torch.Tensor) -> bool:
    """Samples of several types: torch.stack promotes them, which it cannot do into memory of one type."""
    dtype = elem.dtype
    return any([tensor.dtype is not dtype for tensor in batch])  # noqa: C419  # a list is twice as fast here


def _array_stacker(new_tensor: NewTensor) -> Callable[..., Any]:
    stock = STOCK[numpy.ndarray]

    def stack(batch: Any, *, collate_fn_map: Any = None) -> Any:
        elem = batch[0]
        dtype = _DTYPES.get(elem.dtype)
        if dtype is None or any([_differs(array, elem) for array in batch]):  # noqa: C419  # as above
            return stock(batch, collate_fn_map=collate_fn_map)  # it refuses, promotes or converts
        shape, count, size = (len(batch), *elem.shape), elem.size * len(batch), elem.nbytes * len(batch)
        stacked = torch.empty(shape, dtype=dtype) if size <= INLINE else new_tensor(shape, dtype, count, size)
        rows = stacked.numpy()
        for place, array in enumerate(batch):  # a third of the time of a tensor for each
            rows[place] = array
        return stacked

    return stack


def _differs(array: Any, elem: Any) -> bool:
    return not _is_plain(type(array)) or array.dtype != elem.dtype or array.shape != elem.shape


def _quick(stack: Callable[..., torch.Tensor], stack_arrays: Callable[..., Any]) -> Callable[[Any], Any]:
    """``default_collate`` for a process whose map has only stock entries."""

    def column(values: Any) -> Any:
        kind = type(values[0])
        if kind is torch.Tensor:
            return stack(values)
        if kind is int:
            return torch.tensor(values)
        if kind is float:
            return torch.tensor(values, dtype=torch.float64)
        if kind is numpy.ndarray:
            return stack_arrays(values, collate_fn_map=default_collate_fn_map)
        return collate(values, collate_fn_map=default_collate_fn_map)

    def quick_collate(batch: Any) -> Any:
        elem = batch[0]
        if type(elem) is tuple:
            width = len(elem)
            if all(len(sample) == width for sample in batch):
                return [column(values) for values in zip(*batch, strict=True)]
        return column(batch)

    return quick_collate
