"""The beginning of an epoch: a new one, or what another run has left of one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

from torch.utils.data.dataloader import _InfiniteConstantSampler

from holdfast._core.refill import Refill
from holdfast._engine.draws import Draws
from holdfast._engine.judge import Judge
from holdfast._engine.population import population
from holdfast._engine.streams import History
from holdfast._engine.trail import Trail
from holdfast.errors import StateMismatch
from holdfast.sampling.distributed import DistributedSampler
from holdfast.sampling.sources import Facts, opened, shape

from .run import Epoch, Progress
from .streams import Streams, loaded_streams


def begun(loader: Any, judge: Judge, base: int | None, shared: int | None) -> Progress:
    """``base`` and ``shared``: seeds that torch has drawn for it. The judge is told of the epoch."""
    run = loader._run
    state = run.loaded or {}
    epoch = run.begin(loader, base, shared)
    make = _of_streams if loader._is_iterable else _of_batches
    progress = make(loader, judge, epoch, state)
    draws, lists = progress.draws, loader._auto_collation
    chosen_from = population(loader._index_sampler, lists=lists)
    judge.begin(epoch.number, Refill(epoch.seed, chosen_from, draws.before, draws.after), progress.moments())
    for seat, history in enumerate(progress.histories):
        judge.streams.resume(seat if loader.num_workers else None, history)
    if "faults" in state:
        loader.faults.resume(state["faults"])
    run.progress, run.loaded = progress, None
    return progress


def _of_batches(loader: Any, judge: Judge, epoch: Epoch, state: dict[str, Any]) -> Progress:
    start = state.get("batch", 0)
    if start:
        _check_epoch(shape(loader._index_sampler).sampler, epoch)
    facts = Facts(epoch.seed, epoch.number, epoch.order, start)
    source = opened(loader._index_sampler, facts, state.get("sampler", {}))
    draws = Draws(
        source.__next__,
        lists=loader._auto_collation,
        start=start,
        done=frozenset(state.get("done", ())),
        before=source.before,
        mark=source.mark,
        marks=source.marks,
    )
    return Progress(epoch, draws, source=source, ahead=judge.left_out_ahead)


def _of_streams(loader: Any, judge: Judge, epoch: Epoch, state: dict[str, Any]) -> Progress:
    draws = Draws(_places(loader._index_sampler).__next__, lists=loader._auto_collation)
    begin, alone = loaded_streams(loader, state) if state else _left_off(loader), not loader.num_workers

    def history(seat: int) -> History:
        return judge.streams.history(None if alone else seat)

    trail = Trail(loader.num_workers, history, begin.points, begin.dealt)
    ahead = trail.left_out_ahead
    return Progress(epoch, draws, trail=trail, before=begin.before, histories=begin.histories, ahead=ahead)


def _places(index_sampler: Any) -> Iterator[Any]:
    """What stands for the indices of a stream's batches. torch's sampler makes the same list anew for each of them."""
    places = iter(index_sampler)
    constant = isinstance(shape(index_sampler).sampler, _InfiniteConstantSampler)
    return repeat(next(places)) if constant else places


def _left_off(loader: Any) -> Streams:
    """The data sets of workers that stay have a state, and so must those of workers that take their place."""
    before = loader._run.progress
    if before is None or not before.over or before.trail is None or not loader.persistent_workers:
        return Streams()
    points = before.trail.left_off()
    return Streams(tuple(points)) if any(point.state is not None for point in points) else Streams()


def _check_epoch(sampler: Any, epoch: Epoch) -> None:
    if isinstance(sampler, DistributedSampler) and sampler.epoch_is_set and sampler.epoch != epoch.number:
        why = "set_epoch was called for another one than that which is to be gone on with"
        raise StateMismatch("epoch", epoch.number, sampler.epoch, why)
