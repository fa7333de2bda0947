"""Works for what is not the rate of an epoch: a beginning, a turn-around, a resumption."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch.utils.data import Dataset

from bench.contest import Turn
from bench.works.memory import FromMemory
from bench.works.spin import spin, turns_for
from bench.works.work import Stored, Work


class Numbered(Dataset[tuple[torch.Tensor, int]]):
    """`length` samples of 16 floats that cost `turns` of processor work each and, at any length, no memory."""

    def __init__(self, length: int, turns: int = 0) -> None:
        self.length, self.turns = length, turns

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        spin(self.turns)
        return torch.full((16,), float(index)), index


class Stamped(Numbered):
    """Each sample says when it was made, by the clock that all processes of the machine share."""

    def __getitem__(self, index: int) -> tuple[torch.Tensor, float, int]:  # type: ignore[override]
        return torch.full((16,), float(index)), time.monotonic(), index


class Working(FromMemory):
    """As `FromMemory`, with the same processor work for each sample."""

    def __init__(self, length: int, shape: tuple[int, ...], turns: int) -> None:
        super().__init__(length, shape)
        self.turns = turns

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        spin(self.turns)
        return super().__getitem__(index)


def record(index: int) -> dict[str, Any]:
    return {"index": index}


class FromRecord:
    """The sample of a stored record: the file has the number, the rest is done as in memory."""

    def __init__(self, dataset: Dataset[Any]) -> None:
        self.dataset = dataset

    def __call__(self, record: dict[str, Any]) -> Any:
        return self.dataset[int(record["index"])]


def numbered(dataset: Any, batch_size: int, **more: Any) -> Work:
    return Work(dataset, batch_size, len(dataset), stored=Stored(record, FromRecord(dataset)), **more)


def small(turn: Turn) -> Work:
    return numbered(Numbered(1000), 10)


def short(turn: Turn) -> Work:
    return numbered(Stamped(200), 10)


def middling(turn: Turn) -> Work:
    """3 ms of processor work for each batch, beside what it takes to make it."""
    batches = turn.scaled(200, 60)
    turns = turns_for(turn, spin, 3e-3, 100_000) // 64
    return numbered(Working(batches * 64, (3, 64, 64), turns), 64)


def long(turn: Turn) -> Work:
    length = turn.scaled(300_000, 100_000)
    turns = turns_for(turn, spin, 10e-6, 100_000)
    return numbered(Numbered(length, turns), 64, shuffle=True, stateful=True, variant=str(length))
