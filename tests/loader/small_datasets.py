"""Small data sets, and a way to compare what comes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import torch
import torch.utils.data


class Squares(torch.utils.data.Dataset):
    def __init__(self, length: int = 10) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        return index * index


class Stream(torch.utils.data.IterableDataset):
    """Every worker gives its share of 0 .. length-1."""

    def __init__(self, length: int = 10) -> None:
        self.length = length

    def __iter__(self) -> Iterator[int]:
        info = torch.utils.data.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(first, self.length, step))


def plain(value: Any) -> Any:
    """Tensors and arrays, wherever they are, as (dtype, shape, list): comparable with ==, types included."""
    if isinstance(value, torch.Tensor):
        return type(value), value.dtype, tuple(value.shape), value.tolist()
    if isinstance(value, numpy.ndarray):
        return "array", value.dtype, value.shape, value.tolist()
    if isinstance(value, dict):
        return type(value), [(key, plain(member)) for key, member in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [plain(member) for member in value]
    return type(value), value
