"""What is put around the user's functions while they are watched: the same results, and a word about each sample."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy
import torch
from torch.utils.data import IterableDataset, IterDataPipe

from holdfast._transport.culprit import find_culprit
from holdfast._worker.culprits import explain_collate
from holdfast._worker.info import get_worker_info

from .contents import Leaves, leaves, parts
from .probe import Note


@dataclass(frozen=True)
class Seen:
    """One batch: who made it, what is in it, and what collating it took. ``size``: bytes of its tensors and arrays, and
    how many they are. ``unsent``: what in it plain pickle refuses, as (path, type, reason)."""

    seat: int | None
    samples: list[Leaves]
    collating: float
    size: tuple[int, int]
    unsent: tuple[str, str, str] | None


class Watched:
    """Collates as ``theirs`` does, and hands over what it saw instead of the batch."""

    def __init__(self, theirs: Any, *, makes_batches: bool, pickles: bool) -> None:
        self.theirs, self._makes_batches, self._pickles = theirs, makes_batches, pickles

    def __call__(self, samples: Any) -> bytes:
        found = [leaves(sample) for sample in (samples if self._makes_batches else [samples])]
        began = perf_counter()
        try:
            batch = self.theirs(samples)
        except Exception as error:
            better = explain_collate(error, samples, None, lambda position: "") if self._makes_batches else error
            raise better from (None if better is error else error)
        collating = perf_counter() - began
        worker = get_worker_info()
        unsent = None
        if self._pickles and worker is not None:  # once: all batches are of one kind, as a rule
            self._pickles, unsent = False, find_culprit(batch, "batch", pickle.dumps)
        return pickle.dumps(Seen(worker.id if worker else None, found, collating, _size(batch), unsent))


def _size(batch: Any) -> tuple[int, int]:
    sizes = [value.nbytes for _, value in parts(batch) if isinstance(value, torch.Tensor | numpy.ndarray)]
    return sum(sizes), len(sizes)


def noted(dataset: Any, note: Note) -> Any:
    """The data set, as one that notes which sample it is on: for loading without workers, which note it themselves."""
    if isinstance(dataset, IterDataPipe):
        return dataset  # torch divides and seeds these, and must see what they are
    if isinstance(dataset, IterableDataset):
        return _NotedStream(dataset, note)
    return (_NotedWhole if hasattr(dataset, "__getitems__") else _Noted)(dataset, note)


class _Noted:
    def __init__(self, dataset: Any, note: Note) -> None:
        self.dataset, self._note = dataset, note

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        self._note.on(index)
        try:
            return self.dataset[index]
        finally:
            self._note.off()


class _NotedWhole(_Noted):
    def __getitems__(self, indices: Any) -> Any:
        self._note.on(indices)
        try:
            return self.dataset.__getitems__(indices)
        finally:
            self._note.off()


class _NotedStream(IterableDataset[Any]):
    def __init__(self, dataset: Any, note: Note) -> None:
        self.dataset, self._note = dataset, note

    def __iter__(self) -> Iterator[Any]:
        items, ordinal = iter(self.dataset), 0
        while True:
            self._note.on(ordinal)
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                self._note.off()
            yield item
            ordinal += 1
