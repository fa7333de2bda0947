"""Reads samples in a worker, and tells of a stretch of them in a few hundred bytes: samples never leave it.

An exception is caught here, and not left to the loader, which would read the whole batch again without that sample.
What ends or stops the worker is the loader's affair: it knows from the logbook which sample it was.
"""

from __future__ import annotations

import heapq
import re
import time
from array import array
from collections.abc import Callable, Sequence
from time import perf_counter, process_time
from typing import Any, NamedTuple

from torch.utils.data import Dataset

from holdfast._worker.describe import describe
from holdfast._worker.life import unwrap
from holdfast.fault import Fault, shortened
from holdfast.policies import is_programming_error

from .look import Look, look_at
from .times import SLOWEST, Slow, binned

LONG = 0.5  # seconds: such a sample is told of, and if it is a worker's first one, read again
_REASON = 160  # characters
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(\.\d+)?")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\S*/\S+")


class Failed(NamedTuple):
    """A sample that could not be read. ``kind`` is a fault's; ``error`` as in a ledger; ``group``: without its names
    and numbers, so that what failed for the same reason is one."""

    position: int
    kind: str
    where: str
    reason: str
    group: str
    error: dict[str, Any]
    when: float
    seconds: float = 0.0
    is_program: bool = False
    ends_stream: bool = False


class Read(NamedTuple):
    position: int
    seconds: float
    processor: float
    look: Look


class Absent(NamedTuple):
    """Stands in the place of a sample that ended its worker."""

    position: int


class Stretch(NamedTuple):
    """What is told of some samples. ``looks``: the positions of those that look so; None: all of them do."""

    first: int
    stop: int
    size: int  # in samples, without those that ended a worker
    seconds: float
    bins: dict[int, int]  # of times, without those that failed
    slowest: list[Slow]
    looks: dict[Look, array[int] | None]
    failed: list[Failed]

    def positions(self, look: Look) -> Sequence[int]:
        own = self.looks[look]
        return range(self.first, self.stop) if own is None else own


class Reader(Dataset[Any]):
    """The user's data set, of which the keys are numbered."""

    def __init__(self, dataset: Any, keys: Sequence[Any]) -> None:
        self.dataset, self._names = dataset, keys
        self._processor = 0.0
        self._began = False

    def __len__(self) -> int:
        return len(self._names)

    def describe(self, position: int) -> str:
        return describe(self.dataset, self._names[position])

    def __getitem__(self, position: int) -> Read | Failed:
        if not self._began:
            return self._first(position)
        begun, processor = perf_counter(), self._processor
        try:
            look = look_at(self._get(self._names[position]))
        except Exception as error:
            self._processor = process_time()
            told = failed(self.dataset, position, self._names[position], error)
            return told._replace(seconds=perf_counter() - begun)
        self._processor = process_time()
        return Read(position, perf_counter() - begun, self._processor - processor, look)

    def _first(self, position: int) -> Read | Failed:
        """Of this process. It pays for what is imported and opened only now: if it is slow, it is timed once more."""
        dataset = unwrap(self.dataset)
        self._get: Callable[[Any], Any] = getattr(dataset, "__getitem__", None) or _one_of_many(dataset)
        self._began, self._processor = True, process_time()
        read = self[position]
        return self[position] if isinstance(read, Read) and read.seconds > LONG else read

    def __getstate__(self) -> dict[str, Any]:
        return {"dataset": self.dataset, "_names": self._names, "_processor": 0.0, "_began": False}


def _one_of_many(dataset: Any) -> Callable[[Any], Any]:
    return lambda key: dataset.__getitems__([key])[0]


def failed(dataset: Any, position: int, key: Any, error: Exception, where: str | None = None) -> Failed:
    """``where`` as the loader would say it without the error, so that it knows the sample by it."""
    if where is None:
        where = describe(dataset, key) or describe(dataset, key, error)
    fault = Fault(time.time(), "exception", 0, None, key, None, where, error, "", None, None, None, 1, "")
    reason = shortened(fault.reason, _REASON)
    told = fault.to_dict()["error"]
    program = is_programming_error(error, unwrap(dataset))
    return Failed(position, "exception", where, reason, grouped(reason), told, fault.when, is_program=program)


def grouped(reason: str) -> str:
    """``OSError: … (12 bytes not processed)`` and ``(13 bytes …)`` are one."""
    return _NUMBER.sub("#", _QUOTED.sub("…", reason))


def stretch(results: list[Read | Failed | Absent]) -> Stretch:
    """As a ``collate_fn``."""
    read = [one for one in results if type(one) is Read]
    looks: dict[Look, array[int] | None] = {}
    for one in read:
        positions = looks.get(one.look)
        if positions is None:
            positions = looks[one.look] = array("q")
        positions.append(one.position)
    first, stop = results[0].position, results[-1].position + 1
    if len(looks) == 1 and len(read) == stop - first:
        looks = dict.fromkeys(looks)
    times = [one.seconds for one in read]
    most = max(SLOWEST, sum(seconds > LONG for seconds in times))
    slowest = [Slow(*one[:3]) for one in heapq.nlargest(most, read, key=_seconds)]
    bins = binned(times) if times else {}
    told = [one for one in results if type(one) is Failed]
    seconds = sum(times) + sum(one.seconds for one in told)
    return Stretch(first, stop, len(read) + len(told), seconds, bins, slowest, looks, told)


def _seconds(read: Read) -> float:
    return read.seconds
