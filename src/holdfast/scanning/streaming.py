"""A scan of a stream: once through, from its beginning. What ends a worker ends its part of the stream, too."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from inspect import isfunction
from types import CodeType
from typing import Any

import numpy

from holdfast._worker.describe import NOT_THE_USERS
from holdfast.errors import StreamLost, WorkerDied, WorkerStalled
from holdfast.policies import Retry
from holdfast.sharing import share
from holdfast.targets.mistake import Mistake
from holdfast.targets.target import Target
from holdfast.tasks.making import default_seats

from .reader import Stretch
from .roll import Roll
from .scan import Clock, Hear, Options, Scan, buried, each_of, loader_for
from .stream import StreamReader, item_at, position_of
from .survey import CORRUPT, DEADLY, Survey

SHARDS = ("n_shards", "num_shards")  # of Hugging Face's streams, which divide themselves by these


def scan(target: Target, options: Options, hear: Hear) -> Scan:
    if options.share is not None:
        raise Mistake("a stream is read from its beginning, and not by --sample", "its first samples: --limit 1000")
    workers = options.workers or (default_seats() if divides_itself(target.dataset) else 1)
    found = Scan(target, options, workers, Survey(None), Roll(options.output))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a loader's: on the number of workers, or numbers that repeat
        try:
            _read(found, hear)
        except KeyboardInterrupt:
            found.stopped = "interrupted"
    return found


def _read(found: Scan, hear: Hear) -> None:
    at = share(numpy.zeros(found.workers, numpy.int64))
    limit = None if found.options.limit is None else -(-found.options.limit // found.workers)
    once_more = Retry(1, on=WorkerStalled, backoff=0)  # so that what came before the item that hangs is told
    loader = loader_for(found, StreamReader(found.target.dataset, at, limit), batch_size=None, on_error=once_more)
    clock = Clock(found.survey, found.options.budget)
    for told in each_of(loader, found.target, lambda error: _bury(found, at, error)):
        clock.note(told)
        _take(found, told)
        hear(found.survey)
        if clock.spent():
            found.stopped = "budget"
            break


def _take(found: Scan, told: Stretch) -> None:
    found.survey.add(told)
    for failed in told.failed:
        if CORRUPT in found.options.quarantine and not failed.is_program:
            found.roll.add(None, failed)
        if failed.ends_stream:
            found.survey.notes.append(_ended(failed.position, f"by {failed.reason}"))


def _bury(found: Scan, at: Any, error: Exception) -> bool:
    """Whether it is what a stream can do to its worker. Nobody can go on behind it."""
    cause = error.__cause__ if isinstance(error, StreamLost) else error
    if not isinstance(cause, WorkerDied | WorkerStalled):
        return False
    position = position_of(cause.seat, int(at[cause.seat]))
    failed = buried(cause, position, "")
    if DEADLY in found.options.quarantine:
        found.roll.add(None, failed)
    found.survey.bury(failed)
    found.survey.notes.append(_ended(position, "with its worker, and nobody can go past that item"))
    return True


def _ended(position: int, why: str) -> str:
    worker, place = item_at(position)
    return f"the stream of worker {worker} ended at item {place} {why}: what is behind it was not read"


# -- how many workers --------------------------------------------------------------------------


def divides_itself(stream: Any) -> bool:
    """Whether each worker gets a share of it: its code asks which worker it is, or it is known to.

    Where that cannot be seen it is read by one worker: two would both read all of it.
    """
    if any((getattr(stream, name, None) or 0) > 1 for name in SHARDS):
        return True
    own = [kind for kind in type(stream).__mro__ if kind.__module__.partition(".")[0] not in NOT_THE_USERS]
    codes = [value.__code__ for kind in own for value in vars(kind).values() if isfunction(value)]
    return any("get_worker_info" in names for code in codes for names in _names(code))


def _names(code: CodeType) -> Iterator[tuple[str, ...]]:
    yield code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
