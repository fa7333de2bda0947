"""The whole trainer is killed, at any moment and again and again, and started anew: the run does not show it."""

from __future__ import annotations

import itertools
import random
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from mortals import EPOCHS, SEED, Life
from reaper import Reaper, reaper

CASES = {
    "map": (Life("map"), (0, 2)),  # a map-style data set is loaded by other numbers of workers each time
    "stream": (Life("stream", 2), (2,)),
    "keeper": (Life("keeper", 2), (2,)),
    "stream in the trainer": (Life("stream"), (0,)),
    "keeper in the trainer": (Life("keeper"), (0,)),
}
BATCHES = {"map": 26, "stream": 24, "keeper": 24}  # of an epoch


@pytest.fixture(scope="module")
def warm():
    with reaper() as process:
        yield process


def noted(folder: Path) -> list[tuple[int, str]]:
    """The number and digest of every batch that any life was given, in the order of time."""
    lines = (folder / "batches").read_text().splitlines()
    return [(int(number), digest) for number, digest in map(str.split, lines)]


def undisturbed(warm: Reaper, life: Life, folder: Path) -> dict[int, str]:
    folder.mkdir()
    death = warm.live(life.told(), folder)
    assert (death.status, death.orphans) == (0, 0), (folder / "said").read_text()
    whole = dict(noted(folder))
    assert list(whole) == list(range(1, EPOCHS * BATCHES[life.kind] + 1))
    assert len(set(whole.values())) == len(whole)
    return whole


def killed_until_done(warm: Reaper, lives, folder: Path, chance: random.Random) -> list[float]:
    """How long workers outlived their trainer, for each time that it was killed."""
    folder.mkdir()
    seconds: list[float] = []
    for life in lives:
        after, delay = chance.randint(4, 16), chance.uniform(0, 0.01)
        if chance.random() < 0.1:
            after, delay = 0, chance.uniform(0, 0.3)  # while it starts
        death = warm.live(life.told(), folder, after, delay)
        assert death.orphans == 0, f"{life} left {death.orphans} processes"
        if death.status == 0:
            break
        assert death.status == -signal.SIGKILL, (folder / "said").read_text()
        seconds.append(death.seconds)
    return seconds


def any_life(life: Life, workers, chance: random.Random, often_auto: float):
    """Lives without end: nothing but the checkpoint is the same each time."""
    while True:
        start = "auto" if chance.random() < often_auto else "fork"
        persistent = life.kind == "map" and chance.random() < 0.5
        yield replace(
            life, workers=chance.choice(workers), start=start, persistent=persistent, seed=chance.randrange(1 << 40)
        )


def storm(warm: Reaper, name: str, folder: Path, seed: int, kills: int, often_auto: float) -> list[float]:
    """Runs of this kind, until so many trainers were killed; every batch that any of them was given is right."""
    life, workers = CASES[name]
    chance = random.Random(f"{name} {seed}")
    seconds: list[float] = []
    whole = undisturbed(warm, replace(life, start="fork"), folder / "undisturbed")
    numbers = itertools.count()  # not of kills: a run may be over before there was one
    while len(seconds) < kills:
        run = folder / f"run-{next(numbers)}"
        seconds += killed_until_done(warm, any_life(life, workers, chance, often_auto), run, chance)
        notes = noted(run)
        assert {number: digest for number, digest in notes if whole[number] != digest} == {}
        assert dict(notes).keys() == whole.keys()
    return seconds


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "map")) for name in CASES]
)
def test_a_run_whose_trainer_is_killed_is_bit_by_bit_the_undisturbed_one(name, warm, tmp_path):
    seconds = storm(warm, name, tmp_path, SEED, kills=3, often_auto=0.2)
    print(f"{len(seconds)} kills; workers outlived their trainer by {max(seconds):.2f} s at most")


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", CASES)
def test_however_often_it_is_killed(name, warm, tmp_path):
    seconds = storm(warm, name, tmp_path, SEED + 1, kills=60, often_auto=0.04)
    print(f"{len(seconds)} kills; workers outlived their trainer by {max(seconds):.2f} s at most")
