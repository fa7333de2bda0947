"""Seconds from a new loader to its first batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.datasets import FromMemory
from bench.harness import Options, Row, Target, best_of, holdfast_loader, torch_loader


def first_batch(options: Options) -> Iterator[Row]:
    """The zygote is warm, as it is from the second loader of a program on, or after `holdfast.warm()`."""
    import holdfast

    holdfast.warm()
    dataset = FromMemory(1000, (16,))
    best = best_of(
        options.rounds,
        holdfast=lambda: _seconds_to_first(lambda: holdfast_loader(dataset, 10)),
        fork=lambda: _seconds_to_first(lambda: torch_loader(dataset, 10)),
        spawn=lambda: _seconds_to_first(lambda: torch_loader(dataset, 10, multiprocessing_context="spawn")),
    )
    ours = best["holdfast"]
    yield Row(
        "time to first batch", "torch spawn", "s", best["spawn"], ours,
        ratio=best["spawn"] / ours, target=Target(50), note="ratio: times faster",
    )  # fmt: skip
    yield Row("time to first batch", "torch fork", "s", best["fork"], ours, target=Target(0.8, at_most=True))


def _seconds_to_first(make: Callable[[], Any]) -> float:
    start = time.perf_counter()
    iterator = iter(make())
    next(iterator)
    seconds = time.perf_counter() - start
    del iterator  # ends the workers, outside the time
    return seconds
