"""torch's default collate, with the stacked tensors written straight into the arena.

torch's own code walks the structure of a sample, with all its rules; only the function that stacks tensors is another
one, put into torch's map of collate functions in this worker. So a user's collate_fn that calls ``default_collate``
gains too. The two commonest samples, a tensor and a tuple of tensors and numbers, skip the walk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data._utils.collate import collate, default_collate, default_collate_fn_map

from holdfast._transport.codec import INLINE

from .collate_types import OURS, STOCK

NewTensor = Callable[[tuple[int, ...], torch.dtype, int, int], torch.Tensor]


def collate_into(new_tensor: NewTensor, added: dict[Any, Callable[..., Any]]) -> Callable[[Any], Any]:
    """Make this process collate into memory from ``new_tensor``; returns what stands for ``default_collate``."""
    stack = _stacker(new_tensor)
    default_collate_fn_map.update(added)
    if torch.Tensor not in added:
        default_collate_fn_map[torch.Tensor] = stack
        OURS.append(stack)
    return default_collate if added else _quick(stack)


def _stacker(new_tensor: NewTensor) -> Callable[..., torch.Tensor]:
    stock = STOCK[torch.Tensor]

    def stack(batch: Any, *, collate_fn_map: Any = None) -> torch.Tensor:
        elem = batch[0]
        if elem.is_nested or elem.layout is not torch.strided:
            return stock(batch, collate_fn_map=collate_fn_map)  # type: ignore[no-any-return]  # it refuses, in torch's words
        count = elem.numel() * len(batch)
        size = count * elem.element_size()
        if size <= INLINE or type(elem) is not torch.Tensor or elem.device.type != "cpu" or _mixed(batch, elem):
            return torch.stack(batch, 0)
        return torch.stack(batch, 0, out=new_tensor((len(batch), *elem.shape), elem.dtype, count, size))

    return stack


def _mixed(batch: Any, elem: torch.Tensor) -> bool:
    """Samples of several types: torch.stack promotes them, which it cannot do into memory of one type."""
    dtype = elem.dtype
    return any([tensor.dtype is not dtype for tensor in batch])  # noqa: C419  # a list is twice as fast here


def _quick(stack: Callable[..., torch.Tensor]) -> Callable[[Any], Any]:
    """``default_collate`` for a process whose map has only stock entries."""

    def column(values: Any) -> Any:
        kind = type(values[0])
        if kind is torch.Tensor:
            return stack(values)
        if kind is int:
            return torch.tensor(values)
        if kind is float:
            return torch.tensor(values, dtype=torch.float64)
        return collate(values, collate_fn_map=default_collate_fn_map)

    def quick_collate(batch: Any) -> Any:
        elem = batch[0]
        if type(elem) is tuple:
            width = len(elem)
            if all(len(sample) == width for sample in batch):
                return [column(values) for values in zip(*batch, strict=True)]
        return column(batch)

    return quick_collate
