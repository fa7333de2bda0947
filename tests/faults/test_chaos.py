"""Storms: workers, and now and then the zygote, are killed at random for a while; the stream must not show it."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy
import pytest
import torch

from holdfast import DataLoader
from holdfast._system.zygote import zygote

GENTLE = (
    8  # kills in a row are this many windows apart at least: two at the same sample would be poison, and rightly so
)


class Field:
    """A sample is its index, random numbers of every kind, and a row whose length depends on the index."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return index, torch.rand(64), random.random(), numpy.random.rand(3), torch.full((1 + index % 700,), index)


class Stream(torch.utils.data.IterableDataset):
    def __init__(self, length: int) -> None:
        self.field = Field(length)

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        for index in range(info.id, len(self.field), info.num_workers):
            yield self.field[index]


def together(samples):
    """Small, large and ragged parts, so that batches travel inside messages and through the arena."""
    index, noise, number, numbers, rows = zip(*samples, strict=True)
    return torch.tensor(index), torch.stack(noise), list(number), numpy.stack(numbers), list(rows)


@dataclass
class Weather:
    """One run: what is loaded, and how. The same for the calm run and the storm."""

    length: int
    batch_size: int
    workers: int
    persistent: bool
    iterable: bool
    prefetch: int
    seed: int

    @classmethod
    def of(cls, chance: random.Random) -> Weather:
        return cls(
            length=chance.randint(200, 2000),
            batch_size=chance.randint(2, 24),
            workers=chance.randint(1, 4),
            persistent=chance.random() < 0.5,
            iterable=chance.random() < 0.4,
            prefetch=chance.randint(1, 3),
            seed=chance.randrange(1 << 30),
        )

    def loader(self) -> DataLoader:
        generator = torch.Generator()
        generator.manual_seed(self.seed)
        return DataLoader(
            Stream(self.length) if self.iterable else Field(self.length),
            batch_size=self.batch_size,
            shuffle=None if self.iterable else True,
            num_workers=self.workers,
            persistent_workers=self.persistent,
            prefetch_factor=self.prefetch,
            collate_fn=together,
            generator=generator,
            timeout=60,
        )


class Storm:
    """Kills somebody after a random number of batches."""

    def __init__(self, weather: Weather, chance: random.Random) -> None:
        self.chance, self.window = chance, weather.workers * weather.prefetch
        self.kills = self.zygotes = 0
        self.next_kill = self._later(0)

    def _later(self, now: int) -> int:
        return now + self.window + self.chance.randint(1, GENTLE * self.window)

    def pass_over(self, iterator) -> Iterator:
        """The iterator's batches, with deaths between and during them."""
        self.next_kill = self._later(0)
        for number, batch in enumerate(iterator):
            yield batch
            if number >= self.next_kill:
                self._strike(iterator)
                # Who is slow is run ahead of, so a victim's batch may be far ahead, and due only then.
                self.next_kill = self._later(iterator._progress.draws.count)

    def _strike(self, iterator) -> None:
        if self.chance.random() < 0.04:
            os.kill(zygote()._popen.pid, signal.SIGKILL)
            self.zygotes += 1
            return
        worker = self.chance.choice(iterator._workers)
        worker.send_signal(self.chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV]))
        self.kills += 1


def same(left, right) -> bool:
    """Bit by bit."""
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, numpy.ndarray):
        return left.dtype == right.dtype and numpy.array_equal(left, right)
    if isinstance(left, list | tuple):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right


def weather_it(seconds: float, seed: int) -> None:
    chance = random.Random(seed)
    deadline = time.monotonic() + seconds
    runs = batches = kills = zygotes = restarts = 0
    while time.monotonic() < deadline:
        weather = Weather.of(chance)
        storm = Storm(weather, chance)
        calm, wild = weather.loader(), weather.loader()
        for epoch in range(3 if weather.persistent else 1):
            expected = list(calm)
            iterator = iter(wild)
            number = -1
            for number, batch in enumerate(storm.pass_over(iterator)):
                assert same(batch, expected[number]), f"seed {seed}, {weather}: epoch {epoch}, batch {number} differs"
            assert number + 1 == len(expected), f"seed {seed}, {weather}: {number + 1} of {len(expected)} batches"
            batches += len(expected)
        restarts += iterator.restarts
        runs, kills, zygotes = runs + 1, kills + storm.kills, zygotes + storm.zygotes
        del iterator
        calm._iterator = wild._iterator = None
    print(f"{runs} runs, {batches} batches, {kills} workers and {zygotes} zygotes killed, {restarts} replaced")
    assert kills > 2
    assert restarts > 2


def test_a_short_storm_does_not_show_in_the_stream():
    weather_it(5, seed=int(os.environ.get("HOLDFAST_SEED", "1")))


@pytest.mark.slow
@pytest.mark.parametrize("part", [1, 2])
def test_a_long_storm_does_not_show_in_the_stream(part):
    weather_it(30, seed=int(os.environ.get("HOLDFAST_SEED", time.time_ns() % 1_000_000)) + part)
