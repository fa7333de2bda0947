"""torch's default collate, with the stacked tensors and arrays written straight into the arena.

torch's own code walks the structure of a sample, with all its rules; only the functions that stack tensors and arrays
are others, put into torch's map of collate functions in this worker. So a user's collate_fn that calls
``default_collate`` gains too. The commonest samples, a tensor, and a tuple or dict of tensors, arrays and numbers, skip
the walk.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy
import torch
from torch.utils.data._utils.collate import collate, default_collate, default_collate_fn_map

from holdfast._transport.layout import INLINE

from .collate_types import OURS, STOCK, are_apart
from .moving import DTYPES, Mover, NewTensor

Functions = dict[Any, Callable[..., Any]]  # by type, as in torch's map
_SHARED = ("holdfast.sharing.tensors", "holdfast.sharing.arrays")  # by name: hardly any worker has to import them


def collate_into(new_tensor: NewTensor, added: Functions, mover: Mover | None = None) -> Callable[[Any], Any]:
    """Make this process collate into memory from ``new_tensor``; returns what stands for ``default_collate``."""
    ours = _stackers(new_tensor, INLINE)
    if torch.Tensor not in added:  # which may be meant for what arrays are made into, too
        default_collate_fn_map.update(ours)
        OURS.extend(ours.values())
    default_collate_fn_map.update(added)
    return _quick(ours, default_collate_fn_map, mover) if are_apart(added) else default_collate


def collate_beside(new_tensor: NewTensor, least: int, mover: Mover) -> Callable[[Any], Any]:
    """The same with a map of its own, for a thread: what has more than ``least`` bytes is in memory from
    ``new_tensor``."""
    ours = _stackers(new_tensor, least)
    return _quick(ours, {**default_collate_fn_map, **ours}, mover)


def _stackers(new_tensor: NewTensor, least: int) -> Functions:
    return {torch.Tensor: _stacker(new_tensor, least), numpy.ndarray: _array_stacker(new_tensor, least)}


def _stacker(new_tensor: NewTensor, least: int) -> Callable[..., torch.Tensor]:
    stock = STOCK[torch.Tensor]

    def stack(batch: Any, *, collate_fn_map: Any = None) -> torch.Tensor:
        elem = batch[0]
        if elem.is_nested or elem.layout is not torch.strided:
            return stock(batch, collate_fn_map=collate_fn_map)  # type: ignore[no-any-return]  # it refuses, in torch's words
        count = elem.numel() * len(batch)
        size = count * elem.element_size()
        if size <= least or not _is_plain(type(elem)) or elem.device.type != "cpu" or _mixed(batch, elem):
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


def _array_stacker(new_tensor: NewTensor, least: int) -> Callable[..., Any]:
    stock = STOCK[numpy.ndarray]

    def stack(batch: Any, *, collate_fn_map: Any = None) -> Any:
        elem = batch[0]
        dtype = DTYPES.get(elem.dtype)
        if dtype is None or any([_differs(array, elem) for array in batch]):  # noqa: C419  # as above
            return stock(batch, collate_fn_map=collate_fn_map)  # it refuses, promotes or converts
        shape, count, size = (len(batch), *elem.shape), elem.size * len(batch), elem.nbytes * len(batch)
        stacked = torch.empty(shape, dtype=dtype) if size <= least else new_tensor(shape, dtype, count, size)
        rows = stacked.numpy()
        for place, row in enumerate(batch):  # a third of the time of a tensor for each
            rows[place] = row
        return stacked

    return stack


def _differs(array: Any, elem: Any) -> bool:
    return not _is_plain(type(array)) or array.dtype != elem.dtype or array.shape != elem.shape


def _numbers(code: str, values: Any, dtype: torch.dtype) -> torch.Tensor:
    """A sixth of the time that ``torch.tensor`` takes, and a thread does not give up the interpreter for it."""
    try:
        return torch.frombuffer(array(code, values), dtype=dtype)
    except (TypeError, OverflowError):  # not all of them are such numbers: torch has rules for it, or words
        return torch.tensor(values, dtype=dtype if code == "d" else None)


def _quick(stackers: Functions, functions: Functions, mover: Mover | None) -> Callable[[Any], Any]:
    """``default_collate`` with a map that has only stock entries for plain samples, and our stackers."""
    stack, stack_arrays = stackers[torch.Tensor], stackers[numpy.ndarray]
    moved = mover.whole if mover is not None else lambda values: None

    def column(values: Any) -> Any:
        kind = type(values[0])
        if kind is torch.Tensor:
            whole = moved(values)
            return stack(values) if whole is None else whole
        if kind is int:
            return _numbers("q", values, torch.int64)
        if kind is float:
            return _numbers("d", values, torch.float64)
        if kind is numpy.ndarray:
            whole = moved(values)
            return stack_arrays(values, collate_fn_map=functions) if whole is None else whole
        return collate(values, collate_fn_map=functions)

    def quick_collate(batch: Any) -> Any:
        elem = batch[0]
        if type(elem) is tuple:
            width = len(elem)
            if all([len(sample) == width for sample in batch]):  # noqa: C419  # as above
                return [column(values) for values in zip(*batch)]
        if type(elem) is dict:
            try:
                return {key: column([sample[key] for sample in batch]) for key in elem}
            except (KeyError, TypeError):
                pass  # torch has words for it
        return column(batch)

    return quick_collate
