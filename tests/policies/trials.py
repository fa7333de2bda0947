"""What the tests of policies share: a noisy data set, a stream, and loaders that are the same but for who loads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch.utils.data import IterableDataset, get_worker_info

import holdfast
from holdfast import DataLoader
from holdfast.testing import Fault

CREWS: dict[str, dict[str, Any]] = {
    "trainer": {"num_workers": 0},
    "processes": {"num_workers": 2, "timeout": 30},
    "threads": {"num_workers": 2, "timeout": 30, "workers": "thread"},
}


class Noisy:
    """Each sample is its index and three random numbers, which depend on the seeds and on the samples before it."""

    def __init__(self, length: int = 24) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return index, torch.rand(1), random.random(), numpy.random.rand()


class OwnNoise(Noisy):
    """The same for threads, whose random numbers are their own."""

    def __getitem__(self, index: int) -> Any:
        rng = holdfast.get_worker_info().rng
        return index, torch.rand(1, generator=rng.torch_generator), rng.random_generator.random()


class Items:
    """An iterator that meets faults and can go on after an exception; ``stays`` where it is as long as one raises."""

    def __init__(self, numbers: range, faults: tuple[Fault, ...], stays: bool) -> None:
        self.numbers, self.faults, self.stays, self.place = numbers, faults, stays, 0

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> Any:
        if self.place >= len(self.numbers):
            raise StopIteration
        number = self.numbers[self.place]
        self.place += not self.stays
        for fault in self.faults:
            fault.meet(number)
        self.place += self.stays
        return number, torch.rand(1), random.random()


class Stream(IterableDataset):
    """Every worker gives its own share of the numbers."""

    def __init__(self, length: int, *faults: Fault, stays: bool = False) -> None:
        self.length, self.faults, self.stays = length, faults, stays

    def share(self) -> range:
        info = holdfast.get_worker_info() or get_worker_info()
        return range(self.length) if info is None else range(info.id, self.length, info.num_workers)

    def __iter__(self) -> Iterator[Any]:
        return Items(self.share(), self.faults, self.stays)


class Generated(Stream):
    """The same by a generator, which ends with its first exception."""

    def __iter__(self) -> Iterator[Any]:
        yield from Items(self.share(), self.faults, self.stays)


def trial(dataset: Any, crew: str = "processes", **options: Any) -> DataLoader:
    """A loader that is the same for every crew."""
    if "batch_size" not in options and "batch_sampler" not in options:
        options["batch_size"] = 4
    generator = torch.Generator().manual_seed(11)
    loader: DataLoader = DataLoader(dataset, **{"generator": generator, **CREWS[crew], **options})
    loader.faults.warn = False
    return loader


def contents(loader: Any) -> list[Any]:
    """The whole epoch, bit by bit."""
    return [[part.tolist() for part in batch] for batch in loader]


def indices(loader: Any) -> list[list[int]]:
    """Of each batch."""
    return [batch[0].tolist() for batch in loader]


def outcomes(loader: Any) -> list[Any]:
    """Of an epoch whose loop goes on after errors: the indices of each batch, or its error."""
    found: list[Any] = []
    batches = iter(loader)
    while True:
        try:
            found.append(next(batches)[0].tolist())
        except StopIteration:
            return found
        except Exception as error:
            found.append(error)
