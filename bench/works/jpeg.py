"""JPEG files decoded with Pillow: what the loader adds to work that is done in the workers anyway."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset

from bench.contest import Turn
from bench.works.files import written
from bench.works.work import Stored, Work

FILES = 256
BATCH_SIZE = 32


class Jpegs(Dataset[tuple[torch.Tensor, int]]):
    """`length` samples out of the given files, resized to a square if `side` is given."""

    def __init__(self, files: Sequence[Path], length: int, side: int | None) -> None:
        self.files = [str(path) for path in files]
        self.length, self.side = length, side

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.decode(self.files[index % len(self.files)]), index

    def record(self, index: int) -> dict[str, Any]:
        return {"jpeg": Path(self.files[index % len(self.files)]).read_bytes(), "number": index}

    def sample(self, record: dict[str, Any]) -> tuple[torch.Tensor, int]:
        return self.decode(io.BytesIO(record["jpeg"])), int(record["number"])

    def decode(self, source: str | io.BytesIO) -> torch.Tensor:
        with Image.open(source) as opened:
            image = opened.convert("RGB")
        if self.side:
            image = image.resize((self.side, self.side))
        return torch.from_numpy(np.array(image))


def resized(turn: Turn) -> Work:
    """Photographs of the usual size, decoded and resized."""
    return _of(turn, (500, 375), 224, turn.scaled(24, 8))


def decoded(turn: Turn) -> Work:
    """Small ones decoded only, where the copy weighs most."""
    return _of(turn, (256, 256), None, turn.scaled(64, 16))


def _of(turn: Turn, size: tuple[int, int], side: int | None, batches: int) -> Work:
    directory = written(Path(turn.directory, f"jpeg-{size[0]}x{size[1]}"), lambda empty: _write_images(empty, size))
    dataset = Jpegs(sorted(directory.iterdir()), batches * BATCH_SIZE, side)
    stored = Stored(dataset.record, dataset.sample)
    return Work(dataset, BATCH_SIZE, len(dataset), stored=stored, unit=1, samples_only=True)


def _write_images(directory: Path, size: tuple[int, int]) -> None:
    """Smooth random pictures: they compress and decode as photographs do, which noise does not."""
    chance = np.random.default_rng(0)
    for number in range(FILES):
        coarse = Image.fromarray(chance.integers(0, 256, (24, 24, 3), dtype=np.uint8))
        coarse.resize(size, Image.Resampling.BICUBIC).save(directory / f"{number:04}.jpg", quality=90)
