"""WebDataset: tar files, of which each worker reads its own, one after the other."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import webdataset
from torch.utils.data import default_collate

from bench.peers.common import Persistent, shards
from bench.works.work import Loader, Stored, Work

SHARDS = 8  # the same number for each of 1, 2, 4 or 8 workers
ENDINGS: dict[type, str] = {bytes: "bin", int: "cls", np.ndarray: "npy"}  # WebDataset's names of what it encodes


def workers(work: Work) -> Loader:
    """Batches are made in the workers and passed on as they are, as WebDataset's documentation advises.

    Shuffled: the order of the tar files, and samples in a buffer of 1,000.
    """
    files = sorted(map(str, shards(work, "webdataset", _write).iterdir()))
    assert work.stored is not None
    samples = webdataset.WebDataset(
        files, shardshuffle=len(files) if work.shuffle else False, nodesplitter=webdataset.split_by_node,
        workersplitter=webdataset.split_by_worker, empty_check=False,
    )  # fmt: skip
    if work.shuffle:
        samples = samples.shuffle(1000)
    batches = samples.map(_Sample(work.stored)).batched(work.batch_size, collation_fn=work.collate or default_collate)
    loader = webdataset.WebLoader(
        batches, batch_size=None, num_workers=work.workers, persistent_workers=True, timeout=work.patience
    )
    return Persistent(loader.pipeline[0], ordered=False)


class _Sample:
    """From the files of a sample, by their endings."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored

    def __call__(self, files: dict[str, Any]) -> Any:
        record = {}
        for name, content in files.items():
            if not name.startswith("__"):
                field, _, ending = name.rpartition(".")
                record[field] = _DECODERS[ending](content)
        return self._stored.sample(record)


_DECODERS: dict[str, Callable[[bytes], Any]] = {
    "bin": lambda content: content,
    "cls": int,
    "npy": lambda content: np.load(io.BytesIO(content)),
}


def _write(directory: Path, work: Work) -> None:
    assert work.stored is not None
    each = -(-work.length // SHARDS)
    for shard, first in enumerate(range(0, work.length, each)):
        with webdataset.TarWriter(str(directory / f"{shard:03}.tar")) as tar:
            for number in range(first, min(first + each, work.length)):
                record = work.stored.record(number)
                files = {f"{field}.{ENDINGS[type(value)]}": value for field, value in record.items()}
                tar.write({"__key__": f"{number:09}", **files})
