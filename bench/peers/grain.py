"""Grain: batches of a MapDataset, read ahead by threads, or by processes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import grain
import numpy as np
import torch
from torch.utils._pytree import tree_map

from bench.contest import Cannot
from bench.peers.batches import Batches, Part
from bench.works.work import Loader, Work

AHEAD = 2  # batches for each worker, as torch's prefetch_factor


def threads(work: Work) -> Loader:
    return Threads(work)


def processes(work: Work) -> Loader:
    return Processes(work)


class Threads:
    """One element is a whole batch. A stream is an interleaving of as many parts as there are workers."""

    def __init__(self, work: Work) -> None:
        self.ordered = not work.stream
        self._work, self._epochs = work, 0
        self._batches: Any = None
        self._state: Any = None

    def __iter__(self) -> Iterator[Any]:
        work, self._epochs = self._work, self._epochs + 1
        dataset = _stream(work) if work.stream else _read(_batches(work, seed=self._epochs), work.workers)
        self._batches = batches = iter(dataset)
        if self._state is not None:
            batches.set_state(self._state)
            self._state = None
        try:
            yield from batches
        finally:
            batches.close()

    def state_dict(self) -> Any:
        return self._batches.get_state()

    def load_state_dict(self, state: Any) -> None:
        self._state = state

    def close(self) -> None:
        pass


class Processes:
    """Batches travel as NumPy arrays, which Grain puts into shared memory. So that processes persist, the data set is
    repeated without end, as Grain's guides do it.

    What was read ahead of an epoch, while others had their turn, is given up by going back to the state at its end, or
    to the very beginning if it was left before; a stream has no such state and keeps it.
    """

    def __init__(self, work: Work) -> None:
        self.ordered = not work.stream
        options = grain.MultiprocessingOptions(num_workers=work.workers, per_worker_buffer_size=AHEAD)
        dataset = _stream(work, endless=True) if work.stream else _read(_batches(work, endless=True), 0)
        self._batches = iter(dataset.map(_to_arrays).mp_prefetch(options))
        self._work = work
        self._beginning = None if work.stream else self._batches.get_state()
        self._state: dict[str, Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        state, self._state = self._state, self._beginning
        if state is not None:
            self._batches.set_state(state)
        yield from map(_to_tensors, islice(self._batches, self._work.batches))
        if not self._work.stream:
            self._state = self._batches.get_state()

    def state_dict(self) -> Any:
        return self._batches.get_state()

    def load_state_dict(self, state: Any) -> None:
        self._state = state

    def close(self) -> None:
        self._batches.close()


def _batches(work: Work, *, seed: int = 0, endless: bool = False) -> Any:
    indices = grain.MapDataset.range(work.length)
    if work.shuffle:
        indices = indices.seed(seed).shuffle()
    batches = indices.batch(work.batch_size, batch_fn=list).map(Batches(work))
    return batches.repeat() if endless else batches


def _read(batches: Any, threads: int) -> Any:
    """In a worker process no thread: Grain advises none for what is in memory."""
    return batches.to_iter_dataset(grain.ReadOptions(num_threads=threads, prefetch_buffer_size=AHEAD * threads))


def _stream(work: Work, *, endless: bool = False) -> Any:
    """All parts in turns; or, for processes, among which `mp_prefetch` divides them, a part at a time, again and again.
    All processes must have as many batches in an epoch as each other for that."""
    parts = grain.MapDataset.range(work.workers).map(partial(Reading, work))
    if not endless:
        return grain.experimental.InterleaveIterDataset(parts, cycle_length=work.workers)
    if work.length % (work.workers * work.batch_size):
        raise Cannot("an endless stream has no end of an epoch where its parts have different lengths")
    return grain.experimental.InterleaveIterDataset(parts.repeat(), cycle_length=1)


class Reading(grain.IterDataset):
    """A part of a stream as Grain has it."""

    def __init__(self, work: Work, number: int) -> None:
        super().__init__()
        self._part = Part(work, int(number), work.workers)

    def __iter__(self) -> grain.DatasetIterator:
        return ReadingIterator(self._part)


class ReadingIterator(grain.DatasetIterator):
    """Without checkpoints: the stream has none."""

    def __init__(self, part: Part) -> None:
        super().__init__()
        self._batches = iter(part)

    def __next__(self) -> Any:
        return next(self._batches)

    def get_state(self) -> dict[str, Any]:
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        pass


def _to_arrays(batch: Any) -> Any:
    return tree_map(lambda leaf: leaf.numpy() if isinstance(leaf, torch.Tensor) else leaf, batch)


def _to_tensors(batch: Any) -> Any:
    return tree_map(lambda leaf: torch.from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf, batch)
