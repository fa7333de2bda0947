"""Samples of two sizes, to be kept."""

from __future__ import annotations

import torch
from torch.utils.data import Dataset

from bench.contest import Turn
from bench.works.work import Work


class Sized(Dataset[tuple[torch.Tensor, int]]):
    """Samples of 1 KiB, every tenth of 64 KiB; each filled with its index."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((16_384 if index % 10 == 0 else 256,), index, dtype=torch.int32), index


def sized(turn: Turn) -> Work:
    length = turn.scaled(4_000, 1_000)
    return Work(Sized(length), 1, length)
