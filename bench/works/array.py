"""A data set that is one large array."""

from __future__ import annotations

import os

import numpy as np
import torch
from torch.utils.data import Dataset

from bench.contest import Turn
from bench.works.work import Work

SAMPLES = 96


class OneArray(Dataset[tuple[torch.Tensor, int]]):
    """Each sample reads a byte of every page of the array, and tells which process did."""

    def __init__(self, size: int) -> None:
        self.array = np.empty(size, dtype=np.uint8)
        self.array.fill(1)  # zeros would not be allocated

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        pages = self.array[::4096]
        if int(pages.sum(dtype=np.int64)) != len(pages):
            raise ValueError("the array is not what was put into the data set")
        return torch.tensor(os.getpid()), index


def array(turn: Turn) -> Work:
    """Half a GB."""
    return Work(OneArray(turn.scaled(500, 200) * 1_000_000), 1, SAMPLES)


def page(turn: Turn) -> Work:
    """The same without the array, so to speak."""
    return Work(OneArray(4096), 1, SAMPLES)
