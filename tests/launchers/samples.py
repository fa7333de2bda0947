"""Small data sets, importable in every worker."""

from __future__ import annotations

import random

import numpy
import torch
from torch.utils.data import Dataset, IterableDataset

import holdfast

SAMPLES = 24


class Plain(Dataset):
    """The same for everybody."""

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return torch.arange(4) + index


class Augmented(Plain):
    """Draws from all three global generators."""

    def __getitem__(self, index):
        drawn = [*torch.rand(2).tolist(), float(numpy.random.rand()), random.random()]
        return torch.tensor([float(index), *drawn], dtype=torch.float64)


class DrawsItsOwn(Plain):
    """Draws from the generators of its worker, as threads must."""

    def __getitem__(self, index):
        rng = holdfast.get_worker_info().rng
        drawn = [
            float(torch.rand((), generator=rng.torch_generator)),
            float(rng.numpy_generator.random()),
            rng.random_generator.random(),
        ]
        return torch.tensor([float(index), *drawn], dtype=torch.float64)


class Stream(IterableDataset):
    """Each worker gives its share; alone, everything."""

    def __iter__(self):
        info = holdfast.get_worker_info()
        first, step = (info.id, info.num_workers) if info is not None else (0, 1)
        yield from (torch.tensor([index, random.randrange(1 << 30)]) for index in range(first, SAMPLES, step))


class Holds(Plain):
    """Has a member that is in the way, or is not."""

    def __init__(self, member):
        self.member = member
