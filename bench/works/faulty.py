"""Samples of which some fail in a given way: once, when the trainer has armed them. The fault is in the data, so that
it is the same for every peer, and nothing needs to be known of a peer's processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from bench.contest import Turn
from bench.works.spin import spin, turns_for
from bench.works.work import Stored, Work

AT = 617  # no number that stands in a message by chance
HOUR = 3600.0


def die() -> None:
    """As by the kernel's OOM killer, or a crash."""
    os.kill(os.getpid(), signal.SIGKILL)


def hang() -> None:
    time.sleep(HOUR)


def fail() -> None:
    raise ValueError("the file ends early")


class Mine:
    """Where a sample fails, and that it does so once: whoever removes the file is the one."""

    def __init__(self, directory: str, fault: Callable[[], None]) -> None:
        self._directory, self._fault = Path(directory, "mines"), fault

    def arm(self, index: int) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._struck.unlink(missing_ok=True)
        (self._directory / str(index)).touch()

    def step_on(self, index: int) -> None:
        try:
            (self._directory / str(index)).unlink()
        except FileNotFoundError:
            return
        self._struck.write_text(repr(time.monotonic()))
        self._fault()

    def struck_at(self) -> float | None:
        """On the clock `time.monotonic`, which is one for all processes."""
        return float(self._struck.read_text()) if self._struck.exists() else None

    def armed(self) -> int:
        """How many have not been stepped on."""
        return sum(path != self._struck for path in self._directory.iterdir())

    @property
    def _struck(self) -> Path:
        return self._directory / "struck"


class Faulty(Dataset[tuple[torch.Tensor, int]]):
    """`length` samples; those of `at` fail when they are armed. `turns`: of processor work for each sample."""

    def __init__(self, length: int, shape: Sequence[int], mine: Mine, at: Iterable[int], turns: int = 0) -> None:
        self.length, self.shape, self.mine, self.at, self.turns = length, tuple(shape), mine, frozenset(at), turns

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        self._make(index)
        return torch.zeros(self.shape), index

    def record(self, index: int) -> dict[str, Any]:
        return {"values": np.zeros(self.shape, np.float32), "number": index}

    def sample(self, record: dict[str, Any]) -> tuple[torch.Tensor, int]:
        self._make(int(record["number"]))
        return torch.from_numpy(np.array(record["values"])), int(record["number"])

    def _make(self, index: int) -> None:
        spin(self.turns)
        if index in self.at:
            self.mine.step_on(index)


def _of(dataset: Faulty, batch_size: int, **options: Any) -> Work:
    stored = Stored(dataset.record, dataset.sample)
    return Work(dataset, batch_size, len(dataset), stored=stored, **options)


def killed(turn: Turn) -> Work:
    return _of(Faulty(2000, (16,), Mine(turn.directory, die), [AT]), 20)


def hangs(turn: Turn) -> Work:
    """Peers that have a time limit for a batch or a sample are given one of 3 s."""
    return _of(Faulty(2000, (16,), Mine(turn.directory, hang), [AT]), 20, patience=3.0)


def raises(turn: Turn) -> Work:
    return _of(Faulty(2000, (16,), Mine(turn.directory, fail), [AT]), 20)


def shm(turn: Turn) -> Work:
    """Batches of 4.8 MB."""
    return _of(Faulty(96, (3, 224, 224), Mine(turn.directory, die), []), 8)


def orphans(turn: Turn) -> Work:
    """For a trainer that is killed: workers that are busy, at 1 ms for a sample."""
    return _of(Faulty(20_000, (3, 64, 64), Mine(turn.directory, die), [], turns_for(turn, spin, 1e-3, 100_000)), 20)


def storm(turn: Turn) -> Work:
    """1 ms of work for a sample, in batches of 64; the samples that may fail stand in the midst of each hundred
    batches, or, in a quick run, of each twenty."""
    batches, every = turn.scaled(200, 40), turn.scaled(100, 20)
    at = [64 * batch + 32 for batch in range(every // 2, batches, every)]
    mine = Mine(f"{turn.directory}/storm-{turn.contender}", die)
    return _of(Faulty(batches * 64, (3, 64, 64), mine, at, turns_for(turn, spin, 1e-3, 100_000)), 64)


def recovery(turn: Turn) -> Work:
    """Next to no work: the time is that of finding out, of a new worker, and of loading the batch again."""
    mine = Mine(f"{turn.directory}/recovery-{turn.contender}", die)
    return _of(Faulty(2000, (16,), mine, range(400, 1600, 7)), 20)
