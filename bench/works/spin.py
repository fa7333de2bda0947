"""Processor work of a fixed amount, not of a fixed time: being preempted must not count as work done."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable
from itertools import repeat
from pathlib import Path

import torch

from bench.contest import Turn

MATRIX = torch.full((96, 96), 1 / 96)
KIBIBYTE = bytes(range(256)) * 4


def spin(turns: int) -> None:
    """A worker's work, in Python. Each turn is a call into C of a quarter of a microsecond, for which the GIL is kept:
    a loop that does nothing but count takes up to a third longer in one process, or thread, than in the next, for as
    long as that lives."""
    checksum = zlib.crc32
    for _ in repeat(None, turns):
        checksum(KIBIBYTE)


def multiply(turns: int) -> None:
    """A trainer's work. It holds the GIL as little as a trainer that waits for its GPU."""
    for _ in range(turns):
        torch.mm(MATRIX, MATRIX)


def turns_for(turn: Turn, work: Callable[[int], None], seconds: float, probe: int) -> int:
    """How many turns of `work` take that long here, undisturbed; found once, and then the same for all contenders."""
    path = Path(turn.directory) / f"seconds_of_{probe}_turns_of_{work.__name__}"
    if not path.exists():
        mine = path.with_name(f"{path.name}.{os.getpid()}")
        mine.write_text(repr(min(_seconds_of(work, probe) for _ in range(20))))
        mine.replace(path)
    return max(1, round(probe * seconds / float(path.read_text())))


def _seconds_of(work: Callable[[int], None], turns: int) -> float:
    began = time.perf_counter()
    work(turns)
    return time.perf_counter() - began
