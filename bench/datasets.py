"""What the loaders are compared on. Importable, so that spawn can be measured; imports nothing of holdfast."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset


class FromMemory(Dataset[tuple[torch.Tensor, int]]):
    """`length` samples out of 64 random tensors held in memory: all cost is the loader's."""

    def __init__(self, length: int, shape: Sequence[int]) -> None:
        self.length = length
        self.samples = torch.randn(64, *shape, generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.samples[index % 64], index


def spin(turns: int) -> None:
    """Keep the processor busy for a fixed amount of work, not of time: being preempted must not count as work done."""
    for _ in range(turns):
        pass


def turns_for(seconds: float) -> int:
    """How many turns of `spin` take that long here, undisturbed."""
    probe = 200_000
    fastest = min(_seconds_of(probe) for _ in range(5))
    return max(1, round(probe * seconds / fastest))


def _seconds_of(turns: int) -> float:
    start = time.perf_counter()
    spin(turns)
    return time.perf_counter() - start


class Working(FromMemory):
    """As `FromMemory`, with the same processor work for each sample."""

    def __init__(self, length: int, shape: Sequence[int], seconds: float) -> None:
        super().__init__(length, shape)
        self.turns = turns_for(seconds)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        spin(self.turns)
        return super().__getitem__(index)


class Skewed(FromMemory):
    """One sample in 100, at random places, takes 100 times as long as the others; by processor work or by sleeping."""

    def __init__(self, length: int, shape: Sequence[int], seconds: float, *, sleeping: bool) -> None:
        super().__init__(length, shape)
        order = torch.randperm(length, generator=torch.Generator().manual_seed(1))
        self.slow = frozenset(order[: length // 100].tolist())
        self.seconds = seconds
        self.turns = turns_for(seconds)
        self.sleeping = sleeping

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        factor = 100 if index in self.slow else 1
        if self.sleeping:
            time.sleep(self.seconds * factor)
        else:
            spin(self.turns * factor)
        return super().__getitem__(index)


class Jpegs(Dataset[tuple[torch.Tensor, int]]):
    """`length` samples decoded with Pillow from the given files, and resized to a square if `side` is given."""

    def __init__(self, files: Sequence[Path], length: int, side: int | None = None) -> None:
        self.files = [str(path) for path in files]
        self.length, self.side = length, side

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        from PIL import Image

        with Image.open(self.files[index % len(self.files)]) as opened:
            image = opened.convert("RGB")
        if self.side:
            image = image.resize((self.side, self.side))
        return torch.from_numpy(np.array(image)), index


class OneArray(Dataset[int]):
    """A large array. Each sample reads a byte of every page of it and tells which process did."""

    def __init__(self, size: int, length: int) -> None:
        self.array = np.empty(size, dtype=np.uint8)
        self.array.fill(1)  # zeros would not be allocated
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        pages = self.array[::4096]
        if int(pages.sum(dtype=np.int64)) != len(pages):
            raise ValueError("the array is not what was put into the data set")
        return os.getpid()


class Sized(Dataset[torch.Tensor]):
    """Samples of 1 KiB, every tenth of 64 KiB; each filled with its index."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((16_384 if index % 10 == 0 else 256,), index, dtype=torch.int32)
