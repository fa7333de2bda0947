"""MosaicML Streaming: shards of its own format (MDS), read by its StreamingDataset and StreamingDataLoader.

`import streaming` imports torchvision for the base class of its vision data sets, which are not used here. Where
torchvision is missing or does not fit the installed torch, an empty stand-in takes its place: see `no_torchvision`.
"""

from __future__ import annotations

import contextlib
import gc
from pathlib import Path
from typing import Any

import numpy as np

try:
    import torchvision  # noqa: F401  only whether it can be
except Exception:  # a build for another torch fails with RuntimeError, OSError or AttributeError
    from bench.peers.no_torchvision import stand_in

    stand_in()

import streaming
from streaming.base.shared import SharedMemory

from bench.peers.common import Persistent, shards
from bench.works.work import Loader, Work

ENCODINGS: dict[type, str] = {bytes: "bytes", int: "int", np.ndarray: "ndarray"}


def workers(work: Work) -> Loader:
    """Shards of the default size, 64 MB. With batches of which it knows the size, it deals them out in turn."""
    directory = shards(work, "streaming", _write)
    dataset = _Samples(work, directory)
    loader = streaming.StreamingDataLoader(
        dataset, batch_size=work.batch_size, num_workers=work.workers, collate_fn=work.collate,
        persistent_workers=True, timeout=work.patience,
    )  # fmt: skip
    return _Cleaned(loader)


class _Samples(streaming.StreamingDataset):
    def __init__(self, work: Work, directory: Path) -> None:
        super().__init__(local=str(directory), shuffle=work.shuffle, batch_size=work.batch_size)
        assert work.stored is not None
        self._sample = work.stored.sample

    def __getitem__(self, at: Any) -> Any:
        return self._sample(super().__getitem__(at))


class _Cleaned(Persistent):
    """Its shared memory has names, and would outlive this program, which is ended by a signal.

    Only that of this program is removed: the library's own `clean_stale_shared_memory` takes away everybody's.
    """

    def close(self) -> None:
        super().close()
        for memory in [found for found in gc.get_objects() if type(found) is SharedMemory]:
            for created in memory.created_shms:
                with contextlib.suppress(FileNotFoundError):
                    created.unlink()
            memory.created_shms.clear()


def _write(directory: Path, work: Work) -> None:
    assert work.stored is not None
    columns = {field: ENCODINGS[type(value)] for field, value in work.stored.record(0).items()}
    with streaming.MDSWriter(out=str(directory), columns=columns) as writer:
        for number in range(work.length):
            writer.write(work.stored.record(number))
