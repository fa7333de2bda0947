"""A table of Hugging Face `datasets`: Arrow in a memory-mapped file, read as tensors."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import datasets
import torch

from bench.contest import Turn
from bench.works.files import written
from bench.works.work import Stored, Work

BATCH_SIZE = 64
WORDS = ("anchor", "kelp", "rock", "tide", "wave", "current", "shell", "harbour")


def table(turn: Turn) -> Work:
    """Rows of an id, a label, 64 numbers and a text; `__getitems__` of the table gives a batch in one call."""
    length = BATCH_SIZE * turn.scaled(120, 80)
    place = written(Path(turn.directory) / f"table-{length}", lambda where: _save(where, length))
    dataset = datasets.load_from_disk(str(place)).with_format("torch")
    stored = Stored(Record(dataset.with_format("numpy")), sample_of)
    return Work(dataset, BATCH_SIZE, length, numbers=numbers_of, touch=touch, stored=stored, unit=1)


def _save(where: Path, length: int) -> None:
    datasets.Dataset.from_dict(_columns(length), features=_features()).save_to_disk(str(where), num_shards=1)


def _features() -> datasets.Features:
    return datasets.Features({
        "id": datasets.Value("int64"),
        "label": datasets.Value("int64"),
        "vector": datasets.List(datasets.Value("float32"), length=64),
        "text": datasets.Value("string"),
    })


def _columns(length: int) -> dict[str, Any]:
    chance = random.Random(0)
    return {
        "id": list(range(length)),
        "label": [chance.randrange(1000) for _ in range(length)],
        "vector": torch.randn(length, 64, generator=torch.Generator().manual_seed(0)).numpy(),
        "text": [" ".join(chance.choices(WORDS, k=chance.randint(4, 40))) for _ in range(length)],
    }


class Record:
    """A row for peers that read only files of their own making."""

    def __init__(self, rows: datasets.Dataset) -> None:
        self.rows = rows

    def __call__(self, index: int) -> dict[str, Any]:
        row = self.rows[index]
        text = str(row["text"]).encode()
        return {"id": int(row["id"]), "label": int(row["label"]), "vector": row["vector"], "text": text}


def sample_of(record: dict[str, Any]) -> dict[str, Any]:
    text = bytes(record["text"]).decode()
    vector = torch.as_tensor(record["vector"])
    return {"id": int(record["id"]), "label": int(record["label"]), "vector": vector, "text": text}


def numbers_of(batch: dict[str, Any]) -> list[int]:
    return batch["id"].tolist()


def touch(batch: dict[str, Any]) -> None:
    batch["vector"].view(-1)[::1024].sum()
