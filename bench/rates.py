"""Batches per second from memory: big, middling and tiny ones; warm workers, order kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import BatchSampler, SequentialSampler, default_collate

from bench import bare
from bench.datasets import FromMemory
from bench.harness import WORKERS, Options, Row, Target, best_of, close, consume, holdfast_loader, torch_loader, warm_up


def big(options: Options) -> Iterator[Row]:
    """154 MB each, beside two bare processes that stack into memory of their own."""
    batches = options.scaled(24, 6)
    yield from _compare("big 256x3x224x224", (3, 224, 224), 256, batches, options, Target(6), bare_target=Target(0.8))


def middling(options: Options) -> Iterator[Row]:
    yield from _compare("middling 64x3x64x64", (3, 64, 64), 64, options.scaled(400, 60), options, Target(6))


def tiny(options: Options) -> Iterator[Row]:
    yield from _compare("tiny 1x16", (16,), 1, options.scaled(6000, 1000), options, Target(8))


def _compare(
    work: str,
    shape: tuple[int, ...],
    batch_size: int,
    batches: int,
    options: Options,
    target: Target,
    bare_target: Target | None = None,
) -> Iterator[Row]:
    dataset = FromMemory(batch_size * batches, shape)
    stock = torch_loader(dataset, batch_size, persistent_workers=True)
    ours = holdfast_loader(dataset, batch_size, persistent_workers=True)
    contenders: dict[str, Callable[[], float]] = {"torch": lambda: consume(stock), "holdfast": lambda: consume(ours)}
    targets = {"torch": target}
    nodes = torchdata_threads(dataset, batch_size)
    if nodes is not None:
        contenders["torchdata threads"] = lambda: consume(nodes)
        targets["torchdata threads"] = Target(1)
    if bare_target is not None:
        contenders["two bare processes"] = lambda: bare.seconds_for(_stacking(dataset, batch_size, batches))
        targets["two bare processes"] = bare_target
    try:
        warm_up(stock)
        warm_up(ours)
        best = best_of(options.rounds, **contenders)
    finally:
        close(stock)
        close(ours)
    for baseline, bound in targets.items():
        yield Row(work, baseline, "batches/s", batches / best[baseline], batches / best["holdfast"], target=bound)


def _stacking(dataset: FromMemory, batch_size: int, batches: int) -> Callable[[int], Callable[[], None]]:
    """Each process stacks its share of the batches into one tensor that it has written once before."""

    def prepare(number: int) -> Callable[[], None]:
        torch.set_num_threads(1)
        out = torch.zeros(batch_size, *dataset.samples.shape[1:])

        def run() -> None:
            for batch in range(number, batches, WORKERS):
                first = batch * batch_size
                torch.stack([dataset[index][0] for index in range(first, first + batch_size)], out=out)

        return run

    return prepare


def torchdata_threads(dataset: Any, batch_size: int) -> Any:
    """The fastest peer, with as many threads as the others have workers; None where it is not installed."""
    try:
        from torchdata.nodes import IterableWrapper, Loader, ParallelMapper
    except ImportError:
        return None

    def load(indices: list[int]) -> Any:
        return default_collate([dataset[index] for index in indices])

    indices = BatchSampler(SequentialSampler(dataset), batch_size, drop_last=False)
    return Loader(ParallelMapper(IterableWrapper(indices), load, num_workers=WORKERS, method="thread", in_order=True))
