"""LitData: chunks of its own format, read in place by its StreamingDataset and StreamingDataLoader."""

from __future__ import annotations

import os
from pathlib import Path

os.environ["LITDATA_DISABLE_VERSION_CHECK"] = "1"  # it would ask the network for its newest version

import litdata
from torch.utils.data import default_collate

from bench.peers.common import Persistent, shards
from bench.works.work import Loader, Work


def workers(work: Work) -> Loader:
    """Chunks of 64 MB, the size that its documentation uses; samples are made by `transform`, in the workers."""
    directory = shards(work, "litdata", _write)
    assert work.stored is not None
    dataset = litdata.StreamingDataset(str(directory), shuffle=work.shuffle, transform=work.stored.sample)
    loader = litdata.StreamingDataLoader(
        dataset, batch_size=work.batch_size, num_workers=work.workers, collate_fn=work.collate or default_collate,
        persistent_workers=True, timeout=work.patience,
    )  # fmt: skip
    return Persistent(loader, ordered=False)


def _write(directory: Path, work: Work) -> None:
    assert work.stored is not None
    numbers = list(range(work.length))
    litdata.optimize(
        work.stored.record, numbers, str(directory), chunk_bytes="64MB", num_workers=1, keep_data_ordered=True,
        start_method="fork", verbose=False,
    )  # fmt: skip
