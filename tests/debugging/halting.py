"""Data sets and functions that stop in a debugger, importable in every worker."""

from __future__ import annotations

import pdb
import random
import time
from pathlib import Path
from typing import Any

import numpy
import torch
from torch.utils.data import IterableDataset, get_worker_info


class Noisy:
    """Draws from all three global generators."""

    def __init__(self, *halts: int) -> None:
        self.halts = halts

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> Any:
        drawn = torch.rand(2)
        if index in self.halts:
            self.halt()
        doubled = index * 2
        return index, drawn, numpy.random.rand(), random.random(), doubled

    def halt(self) -> None:
        breakpoint()  # this is what is tested


class BySetTrace(Noisy):
    def halt(self) -> None:
        pdb.set_trace()


class Halting(Noisy):
    """With the breakpoint in the very frame that has the variables."""

    def __getitem__(self, index: int) -> Any:
        drawn = torch.rand(2)
        if index in self.halts:
            breakpoint()
        doubled = index * 2
        return index, drawn, numpy.random.rand(), random.random(), doubled


class HaltingWhenTold(Noisy):
    """Comes to its breakpoint when ``told`` is there, and leaves ``reached`` just before it."""

    def __init__(self, folder: Path, *halts: int) -> None:
        super().__init__(*halts)
        self.told, self.reached = folder / "told", folder / "reached"

    def halt(self) -> None:
        while not self.told.exists():
            time.sleep(0.01)
        self.reached.touch()
        breakpoint()


class Failing(Noisy):
    """Raises at those; ``fatal``: by a mistake in the program."""

    def __init__(self, *halts: int, fatal: bool = False) -> None:
        super().__init__(*halts)
        self.fatal = fatal

    def halt(self) -> None:
        marker = "seen"
        if self.fatal:
            no_such_name  # noqa: B018, F821
        raise ValueError(f"bad sample, {marker}")


class HaltingStream(IterableDataset):
    """Knows its state, so that a loader asks for it before the first batch."""

    def __init__(self) -> None:
        self.begun = 0

    def __iter__(self) -> Any:
        breakpoint()
        for item in range(self.begun, 4):
            self.begun = item + 1
            yield item + 10 * get_worker_info().id

    def state_dict(self) -> dict[str, int]:
        return {"begun": self.begun}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.begun = state["begun"]


def halting_init(seat: int) -> None:
    breakpoint()


def halting_call(number: int) -> int:
    if number == 3:
        breakpoint()
    return number * number


def plain_list(samples: Any) -> Any:
    return list(samples)


def equal(one: Any, other: Any) -> bool:
    """Of batches that are lists of samples."""
    return [[*map(repr, sample)] for batch in one for sample in batch] == [
        [*map(repr, sample)] for batch in other for sample in batch
    ]
