"""holdfast, with processes and with threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import IterableDataset

import holdfast
from bench.peers.common import Persistent
from bench.works.work import Loader, Work


def processes(work: Work) -> Loader:
    return _open(work)


def shared(work: Work) -> Loader:
    """The data set is shared by trainer and workers: one copy in all."""
    return _open(work.but(dataset=holdfast.share(work.dataset)))


def threads(work: Work) -> Loader:
    """In threads a stream has to be divided by holdfast's own `get_worker_info`: torch's says None there."""
    if work.stream:
        work = work.but(dataset=Divided(work.dataset))
    return _open(work, workers="thread")


class Divided(IterableDataset[Any]):
    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __iter__(self) -> Iterator[Any]:
        worker = holdfast.get_worker_info()
        return self.stream.part(worker.id, worker.num_workers)


def _open(work: Work, **options: Any) -> Loader:
    """With a limit of time, a sample that exceeds it is tried again; what raises is raised, which is the default."""
    if work.patience:
        options |= {"stall_timeout": work.patience, "on_error": "retry"}
    loader = holdfast.DataLoader(
        work.dataset, work.batch_size, collate_fn=work.collate, num_workers=work.workers,
        shuffle=work.shuffle or None, persistent_workers=True, **options,
    )  # fmt: skip
    return Persistent(loader)
