"""A seeded walk through a simulated world: the same seed, the same story."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from .._core.machine import Limits
from .world import World


def some_limits(rng: Random) -> Limits:
    """Limits of every kind, small ones more often: that is where the corners are."""
    return Limits(
        seats=rng.choice([1, 2, 2, 3, 5, 8]),
        prefetch=rng.choice([1, 2, 2, 3]),
        in_order=rng.random() < 0.7,
        bound=rng.random() < 0.5,
        attempts=rng.choice([1, 2, 2, 3, 99]),
        max_restarts=rng.choice([None, None, None, 0, 3, 20]),
        crash_loop=rng.choice([3, 10, 10**6, 10**6]),
        recycle_after=rng.choice([None, None, 1, 3]),
        run_ahead=rng.choice([0, 1, 5, 128]),
        run_ahead_bytes=rng.choice([1, 300, 1 << 20]),
    )


def live(world: World, rng: Random, steps: int) -> World:
    """Let anything happen for a while, then nothing bad any more: the epoch must come to its end by itself."""
    for _ in range(steps):
        _move(world, rng)
        if world.over and not world.last_words and rng.random() < 0.1:
            break
    world.benign = True
    fair = Random(rng.getrandbits(32))  # a test's own choices may be the same for ever, and then nothing ends
    for _ in range(steps + 100 * world.longest * (world.limits.seats + 1)):
        if world.epoch_is_settled or not world.epochs:
            return world
        _move(world, fair)
    world.referee.promise(False, "nothing bad happens any more, and still the epoch does not end")
    return world


def walk(seed: int, steps: int = 400, limits: Limits | None = None) -> World:
    rng = Random(seed)
    deadly = rng.choice([0.2, 0.7, 5, 40])
    limits = limits or some_limits(rng)
    if deadly > 1 and rng.random() < 0.8:  # else it would be over too soon to see much
        limits = replace(limits, max_restarts=None, crash_loop=10**6)
    samples, brisk = rng.choice([1, 2, 100]), rng.choice([0.3, 6])
    world = World(limits, prompt=rng.random() < 0.7, deadly=deadly, samples=samples, brisk=brisk)
    return live(world, rng, steps)


def _move(world: World, rng: Random) -> None:
    weights, moves = zip(*((weight, move) for weight, move in world.moves()))
    rng.choices(moves, weights)[0](rng)
