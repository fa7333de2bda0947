"""torch.utils.data.DataLoader, by each of its start methods."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader

from bench.peers.common import Persistent
from bench.works.work import Loader, Work


def fork(work: Work) -> Loader:
    return _open(work, "fork")


def unordered(work: Work) -> Loader:
    return _open(work, "fork", in_order=False)


def forkserver(work: Work) -> Loader:
    return _open(work, "forkserver")


def spawn(work: Work) -> Loader:
    return _open(work, "spawn")


def _open(work: Work, start: str, **options: Any) -> Loader:
    loader = DataLoader(
        work.dataset, work.batch_size, collate_fn=work.collate, num_workers=work.workers,
        shuffle=work.shuffle or None, persistent_workers=True, multiprocessing_context=start,
        timeout=work.patience, **options,
    )  # fmt: skip
    return Persistent(loader, ordered=options.get("in_order", True))
