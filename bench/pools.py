"""Pools beside those of the standard library and of torch: round trips, many small tasks, large ones, deaths."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy
import torch
import torch.multiprocessing

from bench.harness import WORKERS, Options, Row, Target, best_of

TINY = 10_000
MB = 1 << 20
_kept: dict[str, Any] = {}


def same(value: Any) -> Any:
    return value


def touched(value: Any) -> int:
    """Looks at a little of it, as a task would."""
    return int(value[::4096].sum())


def made(kind: str, size: int) -> Any:
    """A new value each time, as a function makes one: torch copies nothing of one that it has sent before."""
    if kind not in _kept:
        _kept[kind] = numpy.ones(size, numpy.uint8) if kind == "numpy" else torch.ones(size, dtype=torch.uint8)
    return _kept[kind].copy() if kind == "numpy" else _kept[kind].clone()


def short(number: int) -> int:
    time.sleep(0.003)
    return number * 2


def pools(options: Options) -> Iterator[Row]:
    from holdfast import Pool

    theirs = multiprocessing.get_context("fork").Pool(WORKERS)
    with theirs, Pool(WORKERS) as ours:
        for pool in (theirs, ours):
            pool.map(same, range(100), chunksize=1)
        yield from _small(theirs, ours, options)
        yield from _large(theirs, ours, "numpy", "multiprocessing.Pool", (6, 6), options)
    theirs = torch.multiprocessing.get_context("fork").Pool(WORKERS)
    with theirs, Pool(WORKERS) as ours:
        yield from _large(theirs, ours, "tensor", "torch.multiprocessing", (1.5, 2), options)
    yield from _executors(options)
    yield _second_pool(options)
    yield from _deaths(options)


def _small(theirs: Any, ours: Any, options: Options) -> Iterator[Row]:
    rounds = options.scaled(500, 50)
    best = best_of(
        3 * options.rounds, theirs=lambda: _round_trips(theirs, rounds), ours=lambda: _round_trips(ours, rounds)
    )
    yield Row(
        "a call and its result", "multiprocessing.Pool", "µs",
        best["theirs"] / rounds * 1e6, best["ours"] / rounds * 1e6, target=Target(0.5, at_most=True),
    )  # fmt: skip
    best = best_of(
        5 * options.rounds,
        theirs=lambda: _timed(lambda: theirs.map(same, range(TINY))),
        ours=lambda: _timed(lambda: ours.map(same, range(TINY))),
    )
    yield Row(
        f"map of {TINY} tiny tasks", "multiprocessing.Pool", "tasks/s",
        TINY / best["theirs"], TINY / best["ours"], target=Target(1),
    )  # fmt: skip


def _round_trips(pool: Any, count: int) -> float:
    return _timed(lambda: [pool.apply(same, (number,)) for number in range(count)])


def _large(
    theirs: Any, ours: Any, kind: str, name: str, targets: tuple[float, float], options: Options
) -> Iterator[Row]:
    size = options.scaled(100, 10) * MB

    def send(pool: Any) -> float:
        # A new one each time: torch moves a tensor into shared memory when it is first sent, and leaves it there.
        value = numpy.ones(size, numpy.uint8) if kind == "numpy" else torch.ones(size, dtype=torch.uint8)
        return _timed(lambda: pool.apply(touched, (value,)))

    def receive(pool: Any) -> float:
        pool.map(_prepare, [(kind, size)] * 2 * WORKERS, chunksize=1)
        return _timed(lambda: touched(pool.apply(made, (kind, size))))

    for way, act, target in (("in", send, targets[0]), ("out", receive, targets[1])):
        best = best_of(options.rounds + 1, theirs=lambda: act(theirs), ours=lambda: act(ours))  # noqa: B023
        figures = size / MB / best["theirs"], size / MB / best["ours"]
        yield Row(f"{size // MB} MB {kind} {way}", name, "MB/s", *figures, target=Target(target))


def _prepare(what: tuple[str, int]) -> None:
    made(*what)
    time.sleep(0.02)  # so that each worker gets one


def _executors(options: Options) -> Iterator[Row]:
    from holdfast import Executor

    count, context = options.scaled(TINY, 500), multiprocessing.get_context("fork")
    with ProcessPoolExecutor(WORKERS, mp_context=context) as theirs, Executor(WORKERS) as ours:
        for executor in (theirs, ours):
            _submit(executor, 100)
        best = best_of(options.rounds, theirs=lambda: _submit(theirs, count), ours=lambda: _submit(ours, count))
    yield Row(
        f"submit of {count} tiny tasks", "ProcessPoolExecutor", "tasks/s",
        count / best["theirs"], count / best["ours"], target=Target(2),
    )  # fmt: skip


def _submit(executor: Any, count: int) -> float:
    def run() -> None:
        futures = [executor.submit(same, number) for number in range(count)]
        if [future.result() for future in futures] != list(range(count)):
            raise AssertionError("wrong results")

    return _timed(run)


def _second_pool(options: Options) -> Row:
    """The zygote is warm, as there was a pool before."""
    from holdfast import Pool

    context = multiprocessing.get_context("fork")
    best = best_of(options.rounds, theirs=lambda: _first_result(context.Pool), ours=lambda: _first_result(Pool))
    seconds = best["ours"] / 0.05
    return Row(
        "a second pool to its first result", "multiprocessing.Pool", "ms", best["theirs"] * 1000, best["ours"] * 1000,
        ratio=seconds, target=Target(1, at_most=True), note="the ratio is to 50 ms",
    )  # fmt: skip


def _first_result(make: Callable[[int], Any]) -> float:
    began = time.perf_counter()
    with make(WORKERS) as pool:
        pool.apply(same, (1,))
        return time.perf_counter() - began


def _deaths(options: Options) -> Iterator[Row]:
    from holdfast import Pool

    seconds = []
    with Pool(1) as pool:
        for _ in range(options.rounds):
            pool.apply(same, (1,))
            os.kill(pool.processes[0].pid, signal.SIGKILL)
            seconds.append(_timed(lambda: pool.apply(same, (1,))))
    yield Row(
        "first result after a kill", "", "ms", None, min(seconds) * 1000,
        ratio=min(seconds) / 0.05, target=Target(1, at_most=True), note="the ratio is to 50 ms",
    )  # fmt: skip
    count = options.scaled(1500, 100)
    with Pool(WORKERS, retries=20) as pool, _killer(pool, options.scaled(3, 1)) as killed:
        results = pool.map(short, range(count), chunksize=1)
    right = sum(result == 2 * number for number, result in enumerate(results))
    yield Row(
        f"{count} tasks, workers killed for 3 s", "all of them", "right", count, right, target=Target(1),
        note=f"{len(killed)} kills",
    )  # fmt: skip


class _killer:
    """Kills a worker of the pool every 20 to 50 ms, for some seconds."""

    def __init__(self, pool: Any, seconds: float) -> None:
        self._pool, self._until, self._killed = pool, time.monotonic() + seconds, list[int]()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> list[int]:
        self._thread.start()
        return self._killed

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _run(self) -> None:
        while time.monotonic() < self._until:
            time.sleep(random.uniform(0.02, 0.05))
            process = random.choice(self._pool.processes)
            if process.is_alive():
                process.kill()
                self._killed.append(process.pid)


def _timed(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began
