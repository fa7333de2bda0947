"""Ragged text: lists of token ids, padded to the longest of the batch by a collate function of the user's own."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from bench.contest import Turn
from bench.works.work import Stored, Work

BATCH_SIZE = 32
TEXTS = 1024
SHORTEST, LONGEST, VOCABULARY = 5, 200, 32_000


class Texts(Dataset[tuple[list[int], int]]):
    """`length` samples out of 1,024 texts in memory."""

    def __init__(self, length: int) -> None:
        self.length = length
        chance = random.Random(0)
        self.texts = [
            [chance.randrange(1, VOCABULARY) for _ in range(chance.randint(SHORTEST, LONGEST))] for _ in range(TEXTS)
        ]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[list[int], int]:
        return self.texts[index % TEXTS], index

    def record(self, index: int) -> dict[str, Any]:
        return {"ids": np.array(self.texts[index % TEXTS], dtype=np.int32), "index": index}


def sample_of(record: dict[str, Any]) -> tuple[list[int], int]:
    return np.asarray(record["ids"]).tolist(), int(record["index"])


def padded(samples: list[tuple[list[int], int]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Token ids, padded with 0; which of them are real; the indices."""
    lengths = torch.tensor([len(ids) for ids, _ in samples])
    longest = int(lengths.max())
    tokens = torch.zeros(len(samples), longest, dtype=torch.int64)
    for row, (ids, _) in enumerate(samples):
        tokens[row, : len(ids)] = torch.tensor(ids)
    mask = torch.arange(longest) < lengths[:, None]
    return tokens, mask, torch.tensor([index for _, index in samples])


def text(turn: Turn) -> Work:
    length = BATCH_SIZE * turn.scaled(400, 200)
    dataset = Texts(length)
    return Work(dataset, BATCH_SIZE, length, padded, stored=Stored(dataset.record, sample_of), unit=1)
