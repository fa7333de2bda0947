"""Data sets whose samples depend on every random number drawn before them in their batch."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Sequence
from typing import Any

import numpy
import torch
from torch.utils.data import IterableDataset

from holdfast import DataLoader


class Noisy:
    """How many numbers a sample draws depends on its index, so that the order matters, too."""

    def __len__(self) -> int:
        return 20

    def __getitem__(self, index: int) -> Any:
        return {"i": index, "t": torch.rand(index % 3 + 1), "n": numpy.random.randn(2), "p": random.random()}


class AllAtOnce(Noisy):
    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        return [self[index] for index in indices]


class Failing(Noisy):
    """Raises at 7, after it drew."""

    def __getitem__(self, index: int) -> Any:
        sample = super().__getitem__(index)
        if index == 7:
            raise ValueError(f"bad after {sample['p']}")
        return sample


class Deadly(Noisy):
    def __getitem__(self, index: int) -> Any:
        if index == 7:
            ctypes.string_at(0)
        return super().__getitem__(index)


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        yield 1


def itself(samples: Any) -> Any:
    return samples


def seeding(worker: int) -> None:
    torch.manual_seed(100 + worker)


def loader(dataset: Any = None, **options: Any) -> DataLoader[Any]:
    options = {"num_workers": 2, "batch_size": 4, "shuffle": True, "collate_fn": itself, **options}
    return DataLoader(dataset or Noisy(), **options)


def made() -> DataLoader[Any]:
    return loader()


def failing() -> DataLoader[Any]:
    return loader(Failing())


def failing_in_order() -> DataLoader[Any]:
    return loader(Failing(), batch_size=5, shuffle=False)


def deadly() -> DataLoader[Any]:
    return loader(Deadly())


def plain() -> Noisy:
    return Noisy()


def stream() -> Stream:
    return Stream()
