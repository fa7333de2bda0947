"""JPEG decoding with Pillow: what the loader adds to work that is done in the workers anyway."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bench import bare
from bench.datasets import Jpegs
from bench.harness import WORKERS, Options, Row, Target, best_of, close, consume, holdfast_loader, torch_loader, warm_up
from bench.rates import torchdata_threads

BATCH_SIZE = 32


def jpeg(options: Options) -> Iterator[Row]:
    """Photographs of the usual size, decoded and resized; and small ones decoded only, where the copy weighs most."""
    yield from _compare("JPEG 500x375 to 224x224", options, (500, 375), 224, options.scaled(64, 8))
    yield from _compare("JPEG 256x256, decoded only", options, (256, 256), None, options.scaled(192, 16))


def _compare(work: str, options: Options, size: tuple[int, int], side: int | None, batches: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as directory:
        dataset = Jpegs(_write_images(Path(directory), 256, size), batches * BATCH_SIZE, side)
        stock = torch_loader(dataset, BATCH_SIZE, persistent_workers=True)
        ours = holdfast_loader(dataset, BATCH_SIZE, persistent_workers=True)
        contenders: dict[str, Callable[[], float]] = {
            "two bare processes": lambda: bare.seconds_for(_decoding(dataset)),
            "holdfast": lambda: consume(ours),
            "torch": lambda: consume(stock),
        }
        nodes = torchdata_threads(dataset, BATCH_SIZE)
        if nodes is not None:
            contenders["torchdata threads"] = lambda: consume(nodes)
        try:
            warm_up(stock)
            warm_up(ours)
            best = best_of(options.rounds, **contenders)
        finally:
            close(stock)
            close(ours)
    rate = {name: len(dataset) / seconds for name, seconds in best.items()}
    targets = {"two bare processes": Target(0.97), "torch": None, "torchdata threads": Target(1)}
    for baseline, target in targets.items():
        if baseline in rate:
            yield Row(work, baseline, "images/s", rate[baseline], rate["holdfast"], target=target)


def _decoding(dataset: Jpegs) -> Callable[[int], Callable[[], None]]:
    def prepare(number: int) -> Callable[[], None]:
        dataset[number]  # Pillow is imported and its decoder is loaded before the time starts, as in warm workers

        def run() -> None:
            for index in range(number, len(dataset), WORKERS):
                dataset[index]

        return run

    return prepare


def _write_images(directory: Path, count: int, size: tuple[int, int]) -> list[Path]:
    """Smooth random pictures: they compress and decode as photographs do, which noise does not."""
    from PIL import Image

    chance = np.random.default_rng(0)
    files = []
    for number in range(count):
        coarse = Image.fromarray(chance.integers(0, 256, (24, 24, 3), dtype=np.uint8))
        files.append(directory / f"{number:04}.jpg")
        coarse.resize(size, Image.Resampling.BICUBIC).save(files[-1], quality=90)
    return files
