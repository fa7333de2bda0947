"""What it costs when workers are killed: holdfast against itself, undisturbed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

from bench.datasets import Working
from bench.harness import Options, Row, Target, best_of, close, consume, holdfast_loader, warm_up

BATCH_SIZE = 64


def kills(options: Options) -> Iterator[Row]:
    """A worker is SIGKILLed every 100 batches. Stock torch is not measured: its run ends with the first kill."""
    batches, every = options.scaled(350, 60), options.scaled(100, 20)
    dataset = Working(batches * BATCH_SIZE, (3, 64, 64), 0.001)
    calm = holdfast_loader(dataset, BATCH_SIZE, persistent_workers=True)
    disturbed = holdfast_loader(dataset, BATCH_SIZE, persistent_workers=True)
    try:
        warm_up(disturbed)
        warm_up(calm)
        best = best_of(
            min(options.rounds, 3),  # ten seconds each
            undisturbed=lambda: consume(calm),
            killed=lambda: _consume_and_kill(disturbed, every, batches),
        )
        restarts = disturbed.restarts
    finally:
        close(calm)
        close(disturbed)
    yield Row(
        f"a worker killed every {every} batches", "holdfast undisturbed", "batches/s",
        batches / best["undisturbed"], batches / best["killed"], target=Target(0.9),
        note=f"{restarts} workers restarted; work of 1 ms per sample",
    )  # fmt: skip


def _consume_and_kill(loader: Any, every: int, batches: int) -> float:
    """An epoch with a kill after each `every` batches; every sample must still come once and in order."""
    start = time.perf_counter()
    iterator = iter(loader)
    seen = 0
    for values, numbers in iterator:
        values.view(-1)[::1024].sum()
        if int(numbers[0]) != seen * BATCH_SIZE:
            raise AssertionError(f"batch {seen} starts with sample {int(numbers[0])}")
        seen += 1
        if seen % every == 0 and seen < batches:
            victims = [worker for worker in iterator._workers if worker.is_alive()]
            os.kill(victims[seen // every % len(victims)].pid, signal.SIGKILL)
    if seen != batches:
        raise AssertionError(f"{seen} of {batches} batches were delivered")
    return time.perf_counter() - start
