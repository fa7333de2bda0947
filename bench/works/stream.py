"""A stream: an IterableDataset that divides itself among the workers."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.utils.data import IterableDataset, get_worker_info

from bench.contest import Turn
from bench.works.spin import spin, turns_for
from bench.works.work import Work

BATCH_SIZE = 64
SECONDS = 0.00002  # of Python for each item


class Stream(IterableDataset[tuple[torch.Tensor, int]]):
    """`length` items, each of 256 numbers and its index."""

    def __init__(self, length: int, turns: int) -> None:
        self.length, self.turns = length, turns
        self.samples = torch.randn(64, 256, generator=torch.Generator().manual_seed(0))

    def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
        worker = get_worker_info()
        return self.part(0, 1) if worker is None else self.part(worker.id, worker.num_workers)

    def part(self, number: int, of: int) -> Iterator[tuple[torch.Tensor, int]]:
        """Every `of`-th item: a worker's share."""
        for index in range(number, self.length, of):
            spin(self.turns)
            yield self.samples[index % 64], index


def stream(turn: Turn) -> Work:
    length = BATCH_SIZE * turn.scaled(400, 200)
    dataset = Stream(length, turns_for(turn, spin, SECONDS, 200_000))
    return Work(dataset, BATCH_SIZE, length, stream=True, unit=1)
