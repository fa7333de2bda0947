"""Data sets to scan, with what is wrong in them."""

from __future__ import annotations

import ctypes
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, get_worker_info

TRUNCATED, TEXT, CRASH, EXIT, HANG, SLOW, NAN, SHAPE, NONE = 3, 11, 17, 20, 23, 29, 31, 37, 41
CORRUPT, DEADLY, ODD = {TRUNCATED, TEXT}, {CRASH, EXIT, HANG}, {NAN, SHAPE, NONE}


def make_pictures(folder: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    for index in range(count):
        Image.fromarray(rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)).save(folder / f"{index:04}.jpg")


def spoil(folder: Path) -> None:
    path = folder / f"{TRUNCATED:04}.jpg"
    path.write_bytes(path.read_bytes()[:500])
    (folder / f"{TEXT:04}.jpg").write_text("not found")


class Pictures(Dataset[Any]):
    """Notes every reading in ``log``."""

    def __init__(self, folder: Path, log: Path | None = None) -> None:
        self.paths = sorted(map(str, folder.glob("*.jpg")))
        self.log = log

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        if self.log is not None:
            note(self.log, index)
        with Image.open(self.paths[index]) as image:
            return torch.from_numpy(np.array(image)).permute(2, 0, 1).float(), index % 10


class Spoilt(Pictures):
    def __getitem__(self, index: int) -> Any:
        if index == CRASH:
            ctypes.string_at(0)
        if index == EXIT:
            os._exit(3)
        if index == HANG:
            time.sleep(1000)
        if index == SLOW:
            time.sleep(1.2)
        image, label = super().__getitem__(index)
        if index == NAN:
            image[0, 0, 0] = float("nan")
        if index == SHAPE:
            image = image[:, :8]
        return (image, None) if index == NONE else (image, label)


class Lazy(Pictures):
    """Gives images that are not read yet."""

    def __getitem__(self, index: int) -> Any:
        return Image.open(self.paths[index])


class Numbers(Dataset[Any]):
    """``takes`` seconds each. Those of ``wrong`` raise what it says."""

    def __init__(
        self, count: int, log: Path | None = None, takes: float = 0.0, wrong: dict[Any, Exception] | None = None
    ) -> None:
        self.count, self.log, self.takes, self.wrong = count, log, takes, wrong or {}

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, key: Any) -> Any:
        if self.log is not None:
            note(self.log, key)
        if self.takes:
            time.sleep(self.takes)
        if key in self.wrong:
            raise self.wrong[key]
        return torch.tensor([0.5, 1.0])


class Broken(Numbers):
    def __getitem__(self, key: Any) -> Any:
        return nowhere  # noqa: F821  # the mistake


class Tape(IterableDataset[Any]):
    """Divides itself. ``events``: what happens at which number."""

    def __init__(self, count: int, events: dict[int, str] | None = None) -> None:
        self.count, self.events = count, events or {}

    def __iter__(self) -> Any:
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info is not None else (0, 1)
        for number in range(worker, self.count, workers):
            event = self.events.get(number)
            if event == "crash":
                ctypes.string_at(0)
            if event == "hang":
                time.sleep(1000)
            if event == "raise":
                raise ValueError(f"rotten {number}")
            yield torch.tensor([float("nan") if event == "nan" else 0.5])


class Whole(IterableDataset[Any]):
    """Does not divide itself, and goes on behind an error."""

    def __init__(self, count: int, bad: int) -> None:
        self.count, self.bad = count, bad

    def __iter__(self) -> Any:
        return Reels(self.count, self.bad)


class Reels:
    def __init__(self, count: int, bad: int) -> None:
        self.count, self.bad, self.at = count, bad, -1

    def __iter__(self) -> Reels:
        return self

    def __next__(self) -> int:
        self.at += 1
        if self.at == self.count:
            raise StopIteration
        if self.at == self.bad:
            raise ValueError(f"rotten {self.at}")
        return self.at


def note(log: Path, key: Any) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{key}\n".encode())
    os.close(descriptor)


def readings(log: Path) -> Counter[str]:
    return Counter(log.read_text().split()) if log.exists() else Counter()
