"""SPDL: a pipeline with one stage that loads whole batches, by threads or by processes.

A pipeline is built for each epoch, as `spdl.dataloader` does it: one that goes on by itself (`continuous`) would load
the first batches of the next epoch while others have their turn.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import torch
from spdl.pipeline import PipelineBuilder, iterate_in_subprocess

from bench.peers.batches import Batches, Part, index_batches
from bench.works.work import Loader, Work

AHEAD = 2  # batches for each worker, as torch's prefetch_factor


class Threads:
    """`use_thread_output_queue` is SPDL's own way to a cheaper hand-over. The source, which has a thread of
    its own, reads a stream by whole batches: to `aggregate` them would cost a hand-over for each item."""

    ordered = True

    def __init__(self, work: Work) -> None:
        self._work = work
        self._load = Batches(work)

    def __iter__(self) -> Iterator[Any]:
        work = self._work
        if work.stream:
            source, load = Part(work, collated=False), self._load.collate
        else:
            source, load = index_batches(work), self._load
        builder = PipelineBuilder().add_source(source)
        builder.pipe(load, concurrency=work.workers, output_order="input").add_sink(AHEAD * work.workers)
        yield from _run(builder, work.workers, work.patience)

    def close(self) -> None:
        pass


class Processes:
    """The stage runs in a pool of processes that outlives the epochs, with a task waiting for each process that is
    busy. Regions (`to`) know no order."""

    ordered = True

    def __init__(self, work: Work) -> None:
        self._work = work
        self._pool = ProcessPoolExecutor(
            work.workers, multiprocessing.get_context("fork"), initializer=_begin, initargs=(Batches(work),)
        )

    def __iter__(self) -> Iterator[Any]:
        work = self._work
        builder = PipelineBuilder().add_source(index_batches(work))
        builder.pipe(_load, executor=self._pool, concurrency=AHEAD * work.workers, output_order="input")
        yield from _run(builder.add_sink(AHEAD * work.workers), 1, work.patience)

    def close(self) -> None:
        self._pool.shutdown()


class Parts:
    """A stream: each process iterates over its share."""

    ordered = False

    def __init__(self, work: Work) -> None:
        parts = [partial(Part, work, number, work.workers) for number in range(work.workers)]
        self._parts = [iterate_in_subprocess(part, buffer_size=AHEAD, mp_context="fork", daemon=True) for part in parts]

    def __iter__(self) -> Iterator[Any]:
        parts = [iter(part) for part in self._parts]
        while parts:
            for part in tuple(parts):
                try:
                    yield next(part)
                except StopIteration:
                    parts.remove(part)

    def close(self) -> None:
        self._parts.clear()


def threads(work: Work) -> Loader:
    return Threads(work)


def processes(work: Work) -> Loader:
    return Parts(work) if work.stream else Processes(work)


def _run(builder: Any, threads: int, patience: float) -> Iterator[Any]:
    """`max_failures=0`: by default it leaves out a batch that fails, with a line in its log."""
    pipeline = builder.build(num_threads=threads, use_thread_output_queue=True, max_failures=0)
    with pipeline.auto_stop():
        yield from pipeline.get_iterator(timeout=patience or None)


_loading: Batches | None = None  # in a process of the pool


def _begin(load: Batches) -> None:
    global _loading
    torch.set_num_threads(1)
    _loading = load


def _load(indices: list[int]) -> Any:
    assert _loading is not None
    return _loading(indices)
