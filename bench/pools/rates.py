"""Many small tasks, and one at a time."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.contest import Turn
from bench.pools import POOLS
from bench.pools.contract import OpenPool, Wanted
from bench.pools.tasks import same


class Repeated:
    """A go repeats `run`, which does `amount` things, for a while. The first ones warm up and are not timed."""

    note = ""

    def __init__(self, pool: OpenPool, amount: int, run: Callable[[], None], seconds: float) -> None:
        self._pool, self._amount, self._run, self._seconds = pool, amount, run, seconds
        for _ in range(3):
            run()

    def go(self) -> float:
        """Things per second."""
        times, began = 0, time.perf_counter()
        while times == 0 or time.perf_counter() - began < self._seconds:
            self._run()
            times += 1
        return times * self._amount / (time.perf_counter() - began)

    def close(self) -> None:
        self._pool.close()


class Latency(Repeated):
    def go(self) -> float:
        """Microseconds of each."""
        return 1e6 / super().go()


def start_map(turn: Turn) -> Repeated:
    items = range(10_000)
    pool = _open(turn)

    def run() -> None:
        _check(pool.map(same, items), items)

    return Repeated(pool, len(items), run, _seconds(turn))


def start_submit(turn: Turn) -> Repeated:
    items = range(turn.scaled(10_000, 2_000))
    pool = _open(turn)

    def run() -> None:
        _check(pool.results(pool.submit(same, items)), items)

    return Repeated(pool, len(items), run, _seconds(turn))


def start_call(turn: Turn) -> Latency:
    items = range(20)
    pool = _open(turn)

    def run() -> None:
        _check([pool.call(same, item) for item in items], items)

    return Latency(pool, len(items), run, _seconds(turn))


def _open(turn: Turn) -> OpenPool:
    return POOLS[turn.contender].open()(Wanted())


def _seconds(turn: Turn) -> float:
    return 0.3 if turn.quick else 1.0


def _check(results: list[int], items: range) -> None:
    if results != list(items):
        raise AssertionError("wrong results")
