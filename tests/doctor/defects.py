"""Data sets with one defect each, and near misses: what the doctor is to name, and what it is to leave alone."""

from __future__ import annotations

import ctypes
import itertools
import os
import random
import struct
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

LENGTH = 200
COUNT = 0
SEEN: list[int] = []
LEAK: list[bytes] = []
OPENED: list[Any] = []


class Healthy(Dataset[Any]):
    """Random, with a cache of nothing, and a file that is opened when it is first needed: all as it should be."""

    def __init__(self) -> None:
        self.order = random.Random(3)
        self.order.shuffle(list(range(9)))
        self.file: Any = None

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> Any:
        self.file = self.file or open(os.devnull, "rb")  # noqa: SIM115  # stays open
        noise = torch.rand(3) + numpy.random.rand() + random.random()
        return {"image": torch.full((3, 8, 8), float(index)), "noise": noise, "label": index % 10}


class Base(Dataset[Any]):
    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> Any:
        return torch.tensor(float(index)), index


class Computes(Base):
    def __getitem__(self, index: int) -> Any:
        return torch.ones(300, 300).sin().sum() + index


class Clock(Base):
    def __getitem__(self, index: int) -> Any:
        return {"value": index, "id": uuid.uuid4().hex}


class OwnGenerator(Base):
    def __init__(self) -> None:
        self.rng = numpy.random.default_rng(0)

    def __getitem__(self, index: int) -> Any:
        return index + self.rng.random()


class Remembers(Base):
    def __init__(self) -> None:
        self.position = 0

    def __getitem__(self, index: int) -> Any:
        self.position += 1
        return self.position


class Counts(Base):
    def __getitem__(self, index: int) -> Any:
        global COUNT
        COUNT += 1
        return index


class Caches(Base):
    def __init__(self) -> None:
        self.cache: dict[int, int] = {}

    def __getitem__(self, index: int) -> Any:
        return self.cache.setdefault(index, index)


class SharedFile(Base):
    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # stays open: the defect
        for index in range(LENGTH):
            self.file.write(struct.pack("q", index))

    def __getitem__(self, index: int) -> Any:
        self.file.seek(8 * index)
        time.sleep(0.0005)  # a slow disk
        return struct.unpack("q", self.file.read(8))[0]


class SharedText(SharedFile):
    def __getitem__(self, index: int) -> Any:
        if super().__getitem__(index) != index:
            raise ValueError("not the record that was asked for")
        return index


class SharedShapes(SharedFile):
    """Wrong records have another shape."""

    def __getitem__(self, index: int) -> Any:
        return torch.zeros(1 if super().__getitem__(index) == index else 2)


class Unsendable(Base):
    def __getitem__(self, index: int) -> Any:
        return threading.Lock()


class Stops(Base):
    def __getitem__(self, index: int) -> Any:
        return next(iter(())) if index == 7 else index


class Raises(Base):
    def __init__(self) -> None:
        self.paths = [f"/data/{index}.jpg" for index in range(LENGTH)]

    def __getitem__(self, index: int) -> Any:
        if index in (5, 70):
            raise ValueError("not a picture")
        return index


class RaisesAmongRandom(Raises):
    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index) + torch.rand(2)


class CrashesAmongRandom(Base):
    def __getitem__(self, index: int) -> Any:
        if index in (4, 5) and get_worker_info() is not None:
            os.abort()
        return torch.rand(2) + index


class Nothing(Base):
    def __getitem__(self, index: int) -> Any:
        return None if index == 9 else index


class Unequal(Base):
    def __getitem__(self, index: int) -> Any:
        return torch.zeros(4 if index == 11 else 3)


class Crashes(Base):
    def __getitem__(self, index: int) -> Any:
        if index == 6:
            ctypes.string_at(0)
        return index


class CrashesInWorkers(Base):
    def __getitem__(self, index: int) -> Any:
        if index == 6 and get_worker_info() is not None:
            os.abort()
        return index


class Hangs(Base):
    def __getitem__(self, index: int) -> Any:
        if index == 4:
            threading.Event().wait()
        return index


class HangsInWorkers(Base):
    def __getitem__(self, index: int) -> Any:
        if index == 4 and get_worker_info() is not None:
            threading.Event().wait()
        return index


class Slow(Base):
    def __getitem__(self, index: int) -> Any:
        time.sleep(0.3)
        return index


class Waits(Base):
    def __getitem__(self, index: int) -> Any:
        time.sleep(0.004)
        return index


class Leaks(Base):
    def __getitem__(self, index: int) -> Any:
        time.sleep(0.004)
        LEAK.append(b"x" * 400_000)
        return index


class LeavesOpen(Base):
    def __getitem__(self, index: int) -> Any:
        time.sleep(0.005)
        OPENED.append(open(os.devnull, "rb"))  # noqa: SIM115  # stays open: the defect
        return index


class Empty(Base):
    def __len__(self) -> int:
        return 0


class Stream(IterableDataset[Any]):
    def __init__(self, length: int = 64) -> None:
        self.length = length

    def __iter__(self) -> Iterator[Any]:
        for index in range(self.length):
            yield {"index": index, "noise": torch.rand(2)}


class Sharded(Stream):
    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        seat, seats = (info.id, info.num_workers) if info else (0, 1)
        yield from itertools.islice(super().__iter__(), seat, None, seats)


class Once(Sharded):
    def __init__(self) -> None:
        super().__init__()
        self.items = super().__iter__()

    def __iter__(self) -> Iterator[Any]:
        return self.items


class Promises(Sharded):
    def __len__(self) -> int:
        return self.length + 5


class Hashes(Base):
    def __getitem__(self, index: int) -> Any:
        return hash(f"image {index}")


class Whole(Base):
    """Gives all samples of a batch at once."""

    def __getitems__(self, indices: list[int]) -> Any:
        return [index * 2 for index in indices]


def as_they_are(samples: Any) -> Any:
    return samples


def seeds_torch(seat: int) -> None:
    torch.manual_seed(seat)


def in_batches(kind: Any, **options: Any) -> DataLoader[Any]:
    return DataLoader(kind(), **{"batch_size": 4, "num_workers": 2, **options})
