"""Large arrays and tensors, to a task and back. `settings`: the `kind`, ``numpy`` or ``tensor``."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.contest import Turn
from bench.pools import POOLS
from bench.pools.contract import OpenPool, Wanted
from bench.pools.tasks import MB, STEP, made, new, prepare, touched

TIMES = 3


class Moved:
    """A go moves `megabytes` some times by `act`, which returns the seconds that it took."""

    note = ""

    def __init__(self, pool: OpenPool, megabytes: float, act: Callable[[], float]) -> None:
        self._pool, self._megabytes, self._act = pool, megabytes, act
        for _ in range(TIMES):
            act()

    def go(self) -> float:
        return TIMES * self._megabytes / sum(self._act() for _ in range(TIMES))

    def close(self) -> None:
        self._pool.close()


def start_in(turn: Turn) -> Moved:
    kind, size, pool = _what(turn)

    def act() -> float:
        # A new one each time: torch moves a tensor into shared memory when it is first sent, and leaves it there.
        value, began = new(kind, size), time.perf_counter()
        _check([pool.call(touched, value)], size)
        return time.perf_counter() - began

    return Moved(pool, size / MB, act)


def start_out(turn: Turn) -> Moved:
    kind, size, pool = _what(turn)
    pool.map(prepare, [(kind, size)] * 2 * Wanted.workers, chunks=False)

    def act() -> float:
        began = time.perf_counter()
        _check([touched(pool.call(made, kind, size))], size)
        return time.perf_counter() - began

    return Moved(pool, size / MB, act)


def start_map(turn: Turn) -> Moved:
    """Four tasks, each with one of its own."""
    kind, size, pool = _what(turn)

    def act() -> float:
        values = [new(kind, size) for _ in range(4)]
        began = time.perf_counter()
        _check(pool.map(touched, values, chunks=False), size)
        return time.perf_counter() - began

    return Moved(pool, 4 * size / MB, act)


def _what(turn: Turn) -> tuple[str, int, OpenPool]:
    if turn.settings["kind"] == "tensor":
        import torch

        torch.set_num_threads(1)
    return turn.settings["kind"], turn.scaled(100, 10) * MB, POOLS[turn.contender].open()(Wanted())


def _check(sums: list[int], size: int) -> None:
    if any(one != -(-size // STEP) for one in sums):
        raise AssertionError("other values arrived")
