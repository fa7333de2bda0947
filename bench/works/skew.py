"""One sample in 100, at random places, takes 100 times as long as the others."""

from __future__ import annotations

import time

import torch

from bench.contest import Turn
from bench.works.memory import FromMemory
from bench.works.spin import spin, turns_for
from bench.works.work import Work

BATCH_SIZE = 8
SECONDS = 0.0002  # for a sample that is not slow


class Skewed(FromMemory):
    """Slow by processor work, or, where `turns` is 0, by sleeping."""

    def __init__(self, length: int, turns: int) -> None:
        super().__init__(length, (3, 32, 32))
        order = torch.randperm(length, generator=torch.Generator().manual_seed(1))
        self.slow = frozenset(order[: length // 100].tolist())
        self.turns = turns

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        factor = 100 if index in self.slow else 1
        if self.turns:
            spin(self.turns * factor)
        else:
            time.sleep(SECONDS * factor)
        return super().__getitem__(index)


def busy(turn: Turn) -> Work:
    return _of(turn, turns_for(turn, spin, SECONDS, 200_000))


def sleep(turn: Turn) -> Work:
    return _of(turn, 0)


def _of(turn: Turn, turns: int) -> Work:
    length = turn.scaled(2400, 800)
    return Work(Skewed(length, turns), BATCH_SIZE, length, unit=1)
