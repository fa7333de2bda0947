"""Samples that are a dict of many small tensors, as in recommendation and reinforcement learning."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import Dataset

from bench.contest import Turn
from bench.works.work import Stored, Work

BATCH_SIZE = 64
SIZES = (1, 2, 4, 8, 16, 32)
DTYPES = (torch.float32, torch.int64, torch.float64, torch.int32, torch.uint8, torch.uint8, torch.float16)
FIELDS = 40


class Fields(Dataset[dict[str, Any]]):
    """`length` samples out of 64 in memory, each of 40 tensors of 1 to 32 numbers, with its index."""

    def __init__(self, length: int) -> None:
        self.length = length
        chance = torch.Generator().manual_seed(0)
        self.values = {
            f"field_{number}": torch.randint(0, 2, (64, SIZES[number % len(SIZES)]), generator=chance).to(
                DTYPES[number % len(DTYPES)]
            )
            for number in range(FIELDS)
        }
        self._prepare()

    def _prepare(self) -> None:
        self._samples = [{name: values[row] for name, values in self.values.items()} for row in range(64)]

    def __getstate__(self) -> dict[str, Any]:
        """To a spawned worker go 40 tensors, not 2,560 views of them."""
        return {"length": self.length, "values": self.values}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {**self._samples[index % 64], "index": index}

    def record(self, index: int) -> dict[str, Any]:
        tensors = {name: tensor.numpy() for name, tensor in self._samples[index % 64].items()}
        return {**tensors, "index": index}


def sample_of(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value if name == "index" else torch.from_numpy(value) for name, value in record.items()}


def numbers_of(batch: dict[str, torch.Tensor]) -> list[int]:
    return batch["index"].tolist()


def touch(batch: dict[str, torch.Tensor]) -> None:
    """A trainer that looks at a number of each field. WebDataset adds one, the keys of the samples."""
    for value in batch.values():
        if isinstance(value, torch.Tensor):
            value.view(-1)[0]


def fields(turn: Turn) -> Work:
    length = BATCH_SIZE * turn.scaled(80, 40)
    dataset = Fields(length)
    stored = Stored(dataset.record, sample_of)
    return Work(dataset, BATCH_SIZE, length, numbers=numbers_of, touch=touch, stored=stored, unit=1)
