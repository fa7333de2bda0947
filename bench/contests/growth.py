"""Curves: rates against the number of workers, the size of a batch and the size of the data set."""

from __future__ import annotations

from typing import Any

from bench.contest import Better, Contest
from bench.peers import BESIDE

CONTENDERS = (
    "holdfast", "holdfast threads", "torch fork", "torchdata nodes, threads", "SPDL threads", "Grain processes",
)  # fmt: skip
WORKERS = (1, 2, 4)
BATCH_SIZES = (1, 4, 16, 64, 256, 1024)
LENGTHS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


def _point(curve: str, at: int, title: str, unit: str, start: str, better: Better = "more", **settings: Any) -> Contest:
    return Contest(
        f"{curve} at {at}", title, unit, f"bench.measures.{start}:start", CONTENDERS,
        better=better, beside=BESIDE, settings=settings, rounds=2, curve=curve, at=at,
    )  # fmt: skip


def _busy(workers: int) -> Contest:
    title = f"0.2 ms of processor work for each sample, 16 a batch, {workers} workers"
    return _point("workers, busy", workers, title, "batches/s", "epoch", work="growth:busy", workers=workers)


def _batch(size: int) -> Contest:
    title = f"{size}×16 float32"
    return _point("batch size", size, title, "batches/s", "epoch", work="growth:by_batch", batch_size=size)


def _begun(length: int) -> Contest:
    title = f"first batch of a shuffled epoch of {length:,}"
    return _point(
        "data set size, first batch", length, title, "ms", "beginning", "less",
        work="growth:by_length", length=length, batches=1,
    )  # fmt: skip


def _going(length: int) -> Contest:
    title = f"first 100 batches of 1024 of a shuffled epoch of {length:,}"
    return _point(
        "data set size, rate", length, title, "samples/s", "beginning",
        work="growth:by_length", length=length, batches=100,
    )  # fmt: skip


CONTESTS = [
    *map(_busy, WORKERS), *map(_batch, BATCH_SIZES), *map(_begun, LENGTHS),
    *map(_going, LENGTHS),
]  # fmt: skip
