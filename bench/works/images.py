"""Images as they are after decoding: bytes, from memory."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import Dataset

from bench.contest import Turn
from bench.works.work import Stored, Work

BATCH_SIZE = 64
SHAPE = (3, 224, 224)


class Images(Dataset[tuple[torch.Tensor, int]]):
    """`length` samples out of 64 random images held in memory."""

    def __init__(self, length: int) -> None:
        self.length = length
        chance = torch.Generator().manual_seed(0)
        self.images = torch.randint(0, 256, (64, *SHAPE), dtype=torch.uint8, generator=chance)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.images[index % 64], index

    def record(self, index: int) -> dict[str, Any]:
        return {"image": self.images[index % 64].numpy().tobytes(), "index": index}


def sample_of(record: dict[str, Any]) -> tuple[torch.Tensor, int]:
    return torch.frombuffer(record["image"], dtype=torch.uint8).view(SHAPE), int(record["index"])


def uint8(turn: Turn) -> Work:
    """9.6 MB each."""
    length = BATCH_SIZE * turn.scaled(100, 60)
    dataset = Images(length)
    return Work(dataset, BATCH_SIZE, length, stored=Stored(dataset.record, sample_of), unit=1)
