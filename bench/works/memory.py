"""Tensors from memory: all cost is the loader's."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.utils.data import Dataset

from bench.contest import Turn
from bench.works.work import Work


class FromMemory(Dataset[tuple[torch.Tensor, int]]):
    """`length` samples out of 64 random tensors held in memory."""

    def __init__(self, length: int, shape: Sequence[int]) -> None:
        self.length = length
        self.samples = torch.randn(64, *shape, generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.samples[index % 64], index


def _of(batches: int, batch_size: int, *shape: int) -> Work:
    length = batches * batch_size
    return Work(FromMemory(length, shape), batch_size, length)


def big(turn: Turn) -> Work:
    """154 MB each."""
    return _of(turn.scaled(16, 6), 256, 3, 224, 224)


def middling(turn: Turn) -> Work:
    return _of(turn.scaled(300, 60), 64, 3, 64, 64)


def tiny(turn: Turn) -> Work:
    return _of(turn.scaled(1200, 800), 1, 16)
