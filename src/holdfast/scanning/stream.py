"""Goes through a stream in its worker. An item is known by the worker and by its place in that worker's share."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic, perf_counter, process_time
from types import GeneratorType
from typing import Any

from torch.utils.data import IterableDataset, IterDataPipe
from torch.utils.data.graph_settings import apply_sharding

from holdfast._worker.describe import describe
from holdfast._worker.info import get_worker_info
from holdfast._worker.life import unwrap

from .look import look_at
from .reader import Absent, Failed, Read, Stretch, failed, stretch

PLACE = 40  # bits of a position that are the place; the rest is the worker
TELLS = 0.2  # seconds from one stretch to the next
IN_A_ROW = 100  # errors after which a stream is taken to have ended


def position_of(worker: int, place: int) -> int:
    return worker << PLACE | place


def item_at(position: int) -> tuple[int, int]:
    """Worker and place."""
    return position >> PLACE, position & ((1 << PLACE) - 1)


class StreamReader(IterableDataset[Stretch]):
    """The user's stream as stretches of it. ``at``: shared by all processes, which place each worker is at."""

    def __init__(self, dataset: Any, at: Any, limit: int | None) -> None:
        self.dataset, self._at, self._limit = dataset, at, limit

    def __iter__(self) -> Iterator[Stretch]:
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info is not None else (0, 1)
        stream = unwrap(self.dataset)
        if isinstance(stream, IterDataPipe):
            apply_sharding(stream, workers, worker)
        return Course(stream, worker, self._at, self._limit)


class Course(Iterator[Stretch]):
    """One worker's way through its share. Its state is how much of it was told: a worker that takes the place of a dead
    one passes over that, and tells what there is up to the item that ended the other, before it tries it."""

    def __init__(self, dataset: Any, worker: int, at: Any, limit: int | None) -> None:
        self._dataset, self._stream = dataset, iter(dataset)
        self._worker, self._at, self._limit = worker, at, limit
        self._fatal = int(at[worker])
        self._place = self._told = self._errors = 0
        self._over = False

    def state_dict(self) -> dict[str, int]:
        return {"told": self._told}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self._told = state["told"]

    def __next__(self) -> Stretch:
        tell_at = monotonic() + TELLS
        while self._place < self._told and not self._over:
            if monotonic() > tell_at:  # nothing to tell but that we have not stalled
                here = position_of(self._worker, self._place)
                return Stretch(here, here, 0, 0.0, {}, [], {}, [])
            self._read()
        found: list[Read | Failed | Absent] = []
        while not self._over and monotonic() <= tell_at and not (found and self._place == self._fatal):
            self._at[self._worker] = self._place
            if (one := self._read()) is not None:
                found.append(one)
        if not found:
            raise StopIteration
        self._told = self._place
        return stretch(found)

    def _read(self) -> Read | Failed | None:
        """The next item; None: there are no more."""
        if self._place == self._limit:
            self._over = True
            return None
        position, begun, processor = position_of(self._worker, self._place), perf_counter(), process_time()
        try:
            look = look_at(next(self._stream))
        except StopIteration:
            self._over = True
            return None
        except Exception as error:
            self._place += 1
            return self._failed(position, error)
        self._place, self._errors = self._place + 1, 0
        return Read(position, perf_counter() - begun, process_time() - processor, look)

    def _failed(self, position: int, error: Exception) -> Failed:
        self._errors += 1
        ended = isinstance(self._stream, GeneratorType) and self._stream.gi_frame is None  # by its first error
        self._over = ended or self._errors == IN_A_ROW
        told = failed(self._dataset, position, None, error, describe(None, None, error))
        return told._replace(ends_stream=self._over)
