"""One sample in 100 is 100 times slower; holdfast keeps the order, torch is measured with and without."""

from __future__ import annotations

from collections.abc import Iterator

from bench.datasets import Skewed
from bench.harness import Options, Row, Target, best_of, close, consume, holdfast_loader, torch_loader, warm_up

BATCH_SIZE = 8


def skew_busy(options: Options) -> Iterator[Row]:
    yield from _compare("skewed, 0.2 ms of work", options, sleeping=False)


def skew_sleep(options: Options) -> Iterator[Row]:
    yield from _compare("skewed, 0.2 ms of sleep", options, sleeping=True)


def _compare(work: str, options: Options, *, sleeping: bool) -> Iterator[Row]:
    length = options.scaled(4000, 800)
    dataset = Skewed(length, (3, 32, 32), 0.0002, sleeping=sleeping)
    ordered = torch_loader(dataset, BATCH_SIZE, persistent_workers=True)
    unordered = torch_loader(dataset, BATCH_SIZE, persistent_workers=True, in_order=False)
    ours = holdfast_loader(dataset, BATCH_SIZE, persistent_workers=True)
    try:
        warm_up(ordered)
        warm_up(unordered, ordered=False)
        warm_up(ours)
        best = best_of(
            options.rounds,
            ordered=lambda: consume(ordered),
            unordered=lambda: consume(unordered),
            holdfast=lambda: consume(ours),
        )
    finally:
        for loader in (ordered, unordered, ours):
            close(loader)
    rate = {name: length / seconds for name, seconds in best.items()}
    yield Row(work, "torch in_order=False", "samples/s", rate["unordered"], rate["holdfast"], target=Target(1))
    yield Row(work, "torch in order", "samples/s", rate["ordered"], rate["holdfast"])
