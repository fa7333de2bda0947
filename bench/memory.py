"""Memory of the workers together, for a data set that is one large array."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader as TorchLoader

from bench.datasets import OneArray
from bench.harness import Options, Row, Target

WORKERS = 4


def memory(options: Options) -> Iterator[Row]:
    """Summed PSS (each page divided by the number of processes that map it) after each worker has read every page.

    An interpreter with torch costs memory too, with any data set. It is taken off: the same crew is measured with an
    array of one page first.
    """
    from holdfast import DataLoader

    size = int(options.memory_gb * 1e9)
    work = f"memory, {size / 1e9:g} GB array, {WORKERS} workers"
    ours, crew = _growth(DataLoader, size)
    note = f"ratio: copies; {crew / 1e6:.0f} MB with the interpreters"
    bound = Target(1.05, at_most=True)
    yield Row(work, "one copy", "MB", size / 1e6, ours / 1e6, target=bound, note=note)
    if options.full:
        theirs, _ = _growth(TorchLoader, size, multiprocessing_context="spawn")
        yield Row(work, "torch spawn", "MB", theirs / 1e6, ours / 1e6)


def _growth(loader_class: type, size: int, **options: Any) -> tuple[int, int]:
    """Bytes that the array adds to the crew, and bytes of the crew in all."""
    without = _crew_pss(loader_class, 4096, **options)
    with_array = _crew_pss(loader_class, size, **options)
    return with_array - without, with_array


def _crew_pss(loader_class: type, size: int, **options: Any) -> int:
    dataset = OneArray(size, 100_000)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This DataLoader will create")  # more workers than cores, on purpose
        loader = loader_class(dataset, batch_size=1, num_workers=WORKERS, **options)
        iterator = iter(loader)
    pids = {worker.pid for worker in iterator._workers}
    have_read: set[int] = set()
    for batch in iterator:
        have_read.update(batch.tolist())
        if have_read >= pids:
            break
    else:
        raise AssertionError(f"only {len(have_read & pids)} of {WORKERS} workers were given work")
    total = sum(_pss(pid) for pid in pids)
    del iterator, loader
    gc.collect()
    return total


def _pss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no Pss in smaps_rollup of {pid}")
