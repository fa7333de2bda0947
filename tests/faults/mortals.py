"""A trainer that may be killed at any moment: it notes what it was given, keeps checkpoints, and goes on from them."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy
import torch
from torch.utils.data import Dataset, IterableDataset

from holdfast import DataLoader, get_worker_info

SEED, EPOCHS, CHECKPOINT_EVERY = 20240229, 3, 3
PICTURES, ITEMS = 103, 96


def sample(index: int) -> tuple[int, torch.Tensor, float, numpy.ndarray]:
    """What is augmented draws from all three sources of chance."""
    return index, torch.rand(5), random.random(), numpy.random.rand(2)


class Pictures(Dataset):
    """Some of them are rotten."""

    def __len__(self) -> int:
        return PICTURES

    def __getitem__(self, index: int) -> Any:
        if index % 17 == 5:
            raise ValueError(f"picture {index} is rotten")
        return sample(index)


class Stream(IterableDataset):
    """It does not know where it is, and is gone through again."""

    def __iter__(self) -> Iterator[Any]:
        seat, seats = place()
        return map(sample, range(seat, ITEMS, seats))


class Keeper(IterableDataset):
    """It knows where it is."""

    def __init__(self) -> None:
        self.given = 0

    def __iter__(self) -> Iterator[Any]:
        seat, seats = place()
        while seat + self.given * seats < ITEMS:
            self.given += 1
            yield sample(seat + (self.given - 1) * seats)
        self.given = 0

    def state_dict(self) -> dict[str, Any]:
        return {"given": self.given}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.given = state["given"]


KINDS: dict[str, Callable[[], Any]] = {"map": Pictures, "stream": Stream, "keeper": Keeper}


def place() -> tuple[int, int]:
    info = get_worker_info()
    return (info.id, info.num_workers) if info is not None else (0, 1)


@dataclass(frozen=True)
class Life:
    """How a trainer is run this time."""

    kind: str
    workers: int = 0
    start: str = "auto"
    persistent: bool = False
    seed: int = SEED  # what torch is seeded with if there is a checkpoint already: of no account then

    def loader(self) -> DataLoader:
        shuffled: dict[str, Any] = {"shuffle": True, "on_error": "skip"} if self.kind == "map" else {}
        return DataLoader(
            KINDS[self.kind](),
            batch_size=4,
            num_workers=self.workers,
            start=self.start,
            persistent_workers=self.persistent and self.workers > 0,
            **shuffled,
        )

    def told(self) -> str:
        return json.dumps(asdict(self))


def train(life: Life, folder: Path, tell: Callable[[], None]) -> None:
    """All epochs, or what is left of them. ``tell`` is called for each batch, when it is noted."""
    checkpoint = folder / "checkpoint.pt"
    resumes = checkpoint.exists()
    torch.manual_seed(life.seed if resumes else SEED)
    loader, done = life.loader(), 0
    if resumes:
        state = torch.load(checkpoint, weights_only=True)
        loader.load_state_dict(state["loader"])
        done = state["done"]
    with open(folder / "batches", "ab", buffering=0) as notes:
        for _ in range(loader.state_dict()["epoch"], EPOCHS):
            for batch in loader:
                torch.rand(1)  # as a model with dropout does
                done += 1
                notes.write(f"{done} {digest(batch)}\n".encode())
                tell()
                if done % CHECKPOINT_EVERY == 0:
                    save({"done": done, "loader": loader.state_dict()}, checkpoint)
            save({"done": done, "loader": loader.state_dict()}, checkpoint)


def save(checkpoint: dict[str, Any], path: Path) -> None:
    unfinished = path.with_suffix(".part")
    with open(unfinished, "wb") as file:
        torch.save(checkpoint, file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def digest(batch: Any) -> str:
    """Of every bit of it."""
    found = hashlib.blake2b(digest_size=16)
    for part in batch:
        found.update(f"{part.dtype} {tuple(part.shape)}".encode() + part.numpy().tobytes())
    return found.hexdigest()
