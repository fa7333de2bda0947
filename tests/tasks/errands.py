"""More of what tasks do in the tests: they say where they run, leave marks, draw random numbers, use resources."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy
import torch
from deeds import await_file


def pid_of(_: object) -> int:
    return os.getpid()


def mark(folder: Path, number: int) -> int:
    (folder / str(number)).touch()
    return number


def mark_and_divide(folder: Path, number: int) -> float:
    """Fails for two numbers."""
    return 1 / (mark(folder, number) % 5)


def sign_in(folder: Path) -> None:
    """An initializer: one file for each worker."""
    (folder / str(os.getpid())).touch(exist_ok=False)


# -- random numbers --------------------------------------------------------------------------------


def draw(_: object = None) -> tuple[float, float, float]:
    return random.random(), float(numpy.random.rand()), float(torch.rand(()))


def kill_once(flag: Path) -> None:
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), 9)


def draw_or_die(number: int, last: int, flag: Path) -> tuple[float, float, float]:
    """Draws and then, at the last number and the first time, dies."""
    drawn = draw()
    if number == last:
        kill_once(flag)
    return drawn


def draw_or_fail(number: int, last: int, flag: Path) -> tuple[float, float, float]:
    drawn = draw()
    if number == last and not flag.exists():
        flag.touch()
        raise OSError("not yet")
    return drawn


# -- resources -------------------------------------------------------------------------------------


class Model:
    """Writes down when it is made and closed."""

    def __init__(self, folder: Path, name: str = "model") -> None:
        self.folder, self.name, self.pid = folder, name, os.getpid()
        self.note("made")

    def note(self, what: str) -> None:
        with open(self.folder / f"{self.name} {what}", "a") as file:
            file.write(f"{os.getpid()}\n")

    def __call__(self, number: int) -> tuple[str, int, int]:
        return self.name, self.pid, number * number

    def close(self) -> None:
        self.note("closed")


def noted(folder: Path, what: str) -> list[int]:
    """The pids that have written it down."""
    path = folder / what
    return sorted(map(int, path.read_text().split())) if path.exists() else []


def use(model: Model, number: int) -> tuple[str, int, int]:
    return model(number)


def use_also(model: Model, number: int) -> tuple[str, int, int]:
    return model(number)


def use_two(model: Model, one: int, other: int) -> tuple[str, int, int]:
    return model(one * other)


# -- values ----------------------------------------------------------------------------------------

KEPT: list[Any] = []


def keep(value: Any) -> int:
    KEPT.append(value)
    return len(KEPT)


def kept() -> list[Any]:
    return KEPT


def same(value: Any) -> Any:
    return value


# -- in a stream -----------------------------------------------------------------------------------


def double(number: int) -> int:
    return number * 2


def wait_at(item: tuple[int, int, Path]) -> int:
    """The square of a number; one of them waits for a file first."""
    number, last, path = item
    if number == last:
        await_file(path)
    return number * number


def mark_when(item: tuple[Path, int]) -> int:
    """All but the first four wait for a file."""
    folder, number = item
    if number >= 4:
        await_file(folder / "go")
    return mark(folder, number)
