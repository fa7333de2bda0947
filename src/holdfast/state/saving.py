"""The state of a loader as a dict of plain types. What it holds is in docs/design/07-resume.md."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from holdfast._core.refill import NEIGHBOURS
from holdfast.ledger import Ledger
from holdfast.policies import policy
from holdfast.sampling.sources import unasked

from .run import Epoch, Progress, Run, keeps_data_set
from .streams import saved_streams

FORMAT = 1


def state_of(loader: Any, at: int | None) -> dict[str, Any]:
    """``at``: how many batches of this epoch are to count as given; None: all that were delivered."""
    run: Run = loader._run
    progress = run.progress
    if run.loaded is not None:
        _expect(at is None, at, "nothing, as a state was loaded and nothing has been given since")
        return deepcopy(run.loaded)
    if progress is None or progress.over:
        _expect(at in (None, 0), at, "0, as no epoch is under way")
        return _between(loader, run, progress)
    return _of_stream(loader, run, progress, at) if loader._is_iterable else _of_map(loader, run, progress, at)


def _between(loader: Any, run: Run, progress: Progress | None) -> dict[str, Any]:
    """Before the first epoch, or after one."""
    state = _common(loader, run, run.prepare(loader))
    if not loader._is_iterable:
        return state
    points = progress.trail.left_off() if progress is not None and progress.trail is not None else []
    return state | saved_streams(loader, points if keeps_data_set(loader) else [])


def _of_map(loader: Any, run: Run, progress: Progress, at: int | None) -> dict[str, Any]:
    draws, source = progress.draws, progress.source
    batch, done = draws.position
    if at is not None and at != batch:
        at = at + batch if at < 0 else at
        _expect(not done, at, "nothing, as batches do not come in order")
        _expect(
            max(draws.start, batch - NEIGHBOURS) <= at <= batch, at, f"{batch}, or one of the {NEIGHBOURS} before it"
        )
        batch = at
    assert source is not None
    mark, again = draws.mark_before(batch, NEIGHBOURS if policy(loader.on_error).tolerant else 0)
    sampler = source.saved(batch, mark) | ({"again": again} if again else {})
    faults = _faults(loader, 0 if done else draws.samples_since(batch), progress.ahead())
    return _common(loader, run, progress.epoch) | {
        "batch": batch,
        "sampler": sampler,
        "done": sorted(done),
        "faults": faults,
    }


def _of_stream(loader: Any, run: Run, progress: Progress, at: int | None) -> dict[str, Any]:
    trail, before = progress.trail, progress.before
    assert trail is not None
    points = tuple(trail.points)
    if at is not None:
        at = at + before + sum(trail.given) if at < 0 else at
        found = [points for points in trail.recent if before + sum(point.batches for point in points) == at]
        _expect(bool(found), at, f"{before + sum(trail.given)}, or one of the {len(trail.recent) - 1} before it")
        points = found[0]
    batch = before + sum(point.batches for point in points)
    unseen = (before + sum(trail.given) - batch) * (loader.batch_size or 1)
    faults = _faults(loader, unseen, progress.ahead())
    state = _common(loader, run, progress.epoch) | {"batch": batch, "faults": faults}
    return state | saved_streams(loader, points, progress)


def _faults(loader: Any, unseen: int = 0, ahead: int = 0) -> dict[str, Any]:
    if loader._deal() is not None:
        return Ledger().saved()  # that of a rank is its own, and the state is not
    return loader.faults.saved(unseen, ahead, policy(loader.on_error).usual())  # type: ignore[no-any-return]


def _common(loader: Any, run: Run, epoch: Epoch) -> dict[str, Any]:
    """Of map-style data sets everything, and always the same keys."""
    iterable = loader._is_iterable
    state: dict[str, Any] = {
        "holdfast": FORMAT,
        "epoch": epoch.number,
        "batch": 0,
        "seed": epoch.seed,
        "order": list(epoch.order),
        "shared_seed": epoch.shared,
        "springs": run.springs(loader),
        "length": None if iterable else length_of(loader.dataset),
        "batch_size": loader.batch_size,
        "num_workers": loader.num_workers,
        "sampler": {"kind": "none"} if iterable else unasked(loader._index_sampler),
        "faults": _faults(loader),
    }
    # torchdata has a part for each worker, whose copy of a map-style data set may have a state there.
    workers = {"_snapshot": {"_worker_snapshots": [None] * loader.num_workers}}
    return state if iterable else state | {"done": []} | workers


def length_of(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


def _expect(valid: bool, at: int | None, expected: str) -> None:
    if not valid:
        raise ValueError(f"at should be {expected}, but got at={at}")
