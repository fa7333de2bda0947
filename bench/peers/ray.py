"""Ray Data, on this machine only. It starts a cluster for each contest and ends it after, so that its daemons are not
in the background of the others; it takes part in contests that are near to what it is made for."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # before it is imported: nothing is to be told to anybody

import numpy as np
import ray
import torch

from bench.contest import Cannot
from bench.peers.batches import Batches, Part
from bench.works.work import Loader, Work

AHEAD = 2  # batches for each worker, as torch's prefetch_factor
_SINGLE, _MANY = "value", "value_{}"  # columns of samples that are no dict


def tasks(work: Work) -> Loader:
    return RayData(work)


class RayData:
    """Tasks load batches into the object store, as columns of arrays; tensors are made of these here.

    Where the work has a collate function of its own, rows come as they are and it is called here: a column cannot have
    batches of different widths. An epoch is an execution of its own, by processes that live as long as the cluster.
    """

    def __init__(self, work: Work) -> None:
        ray.init(
            num_cpus=work.workers, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR,
            configure_logging=False,
        )  # fmt: skip
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        self.ordered = not work.stream
        self._work = work
        self._dataset = _stream(work) if work.stream else _rows(work)
        self._collate = Rows(work) if work.collate else _tensors

    def __iter__(self) -> Iterator[Any]:
        """`iter_torch_batches` does the same, but needs Ray Train."""
        ahead = AHEAD * self._work.workers
        arrays = self._dataset.iter_batches(
            batch_size=self._work.batch_size, batch_format="numpy", prefetch_batches=ahead
        )
        return map(self._collate, arrays)

    def close(self) -> None:
        """The cluster goes too: it would be in the background of the others."""
        del self._dataset
        ray.shutdown()


def _rows(work: Work) -> Any:
    indices = ray.data.range(work.length, override_num_blocks=_blocks(work))
    if work.shuffle:
        indices = indices.random_shuffle()
    return indices.map_batches(Columns(work), batch_size=work.batch_size)


def _blocks(work: Work) -> int:
    """Some for each worker, so that both are busy to the end; of whole batches, which need not be cut again then."""
    some = range(4 * work.workers, work.workers - 1, -1)
    return next((blocks for blocks in some if work.batches % blocks == 0), work.workers)


def _stream(work: Work) -> Any:
    if work.collate:
        raise Cannot("a stream with a collate function of its own has not been tried")
    numbers = ray.data.range(work.workers, override_num_blocks=work.workers)
    return numbers.map_batches(StreamColumns(work), batch_size=1)


class Columns:
    """Runs in a task: from indices to columns."""

    def __init__(self, work: Work) -> None:
        self.load, self.collated = Batches(work), work.collate is None

    def __call__(self, rows: dict[str, np.ndarray]) -> dict[str, Any]:
        indices = rows["id"].tolist()
        return _named(self.load(indices)) if self.collated else _ragged(self.load.samples(indices))


class StreamColumns:
    """Runs in a task: from the number of a part to the columns of its batches."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def __call__(self, rows: dict[str, np.ndarray]) -> Iterator[dict[str, Any]]:
        for number in rows["id"].tolist():
            yield from map(_named, Part(self.work, number, self.work.workers))


def _named(batch: Any) -> dict[str, Any]:
    if isinstance(batch, dict):
        return {name: _array(value) for name, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        return {_MANY.format(place): _array(value) for place, value in enumerate(batch)}
    return {_SINGLE: _array(batch)}


def _array(value: Any) -> Any:
    return value.numpy() if isinstance(value, torch.Tensor) else np.array(value, dtype=object)


def _ragged(samples: list[tuple[Any, ...]]) -> dict[str, Any]:
    """A column for each place of the samples' tuples."""
    return {_MANY.format(place): list(values) for place, values in enumerate(zip(*samples))}


def _tensors(columns: dict[str, np.ndarray]) -> Any:
    values = {name: column.tolist() if column.dtype == object else _tensor(column) for name, column in columns.items()}
    if _SINGLE in values:
        return values[_SINGLE]
    return [*values.values()] if _MANY.format(0) in values else values


def _tensor(column: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(column)


class Rows:
    """Collates rows by the work's own function."""

    def __init__(self, work: Work) -> None:
        self.collate = work.collate

    def __call__(self, columns: dict[str, np.ndarray]) -> Any:
        assert self.collate is not None
        return self.collate(list(zip(*(_plain(column) for column in columns.values()))))


def _plain(column: np.ndarray) -> list[Any]:
    if column.dtype != object:
        return column.tolist()
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in column]
