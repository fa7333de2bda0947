"""Streams in a loader's state. The states that data sets keep of themselves are laid out as torchdata lays them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch.utils.data.dataloader import _get_distributed_settings

from holdfast._engine.streams import History
from holdfast._engine.trail import START, Dealt, Point
from holdfast._transport.faults import unpack_error
from holdfast.errors import StateMismatch

from .run import Progress

_FEW = ("batches", "items", "digest", "state_batches", "state_items", "state_digest")


class Streams(NamedTuple):
    """Where to begin: by seat, how far each is; and batches given with other numbers of workers."""

    points: tuple[Point, ...] = ()
    dealt: Dealt = ()
    before: int = 0
    histories: tuple[History, ...] = ()


def saved_streams(loader: Any, points: Sequence[Point], progress: Progress | None = None) -> dict[str, Any]:
    """``progress``: None between epochs, when nothing but states is left of streams."""
    for point in points:
        if point.unsaved is not None:
            raise unpack_error(point.unsaved.error)[0]
    if progress is None:
        return saved_workers(loader, [point.state for point in points])
    assert progress.trail is not None
    entries = []
    for seat, point in enumerate(points):
        # Not what only the timing tells us, that its worker has found nothing more: a state hangs on what was given.
        entry: dict[str, Any] = {name: getattr(point, name) for name in _FEW} | {"ended": point.over}
        entries.append(entry | progress.trail.history(seat, point))
    dealt = [[step, list(counts)] for step, counts in progress.trail.dealt]
    state = {"streams": entries, "shard": loader.shard, "world": world_size(), "before": progress.before}
    now, ended = progress.trail.points, progress.trail.ended
    flags = [seat in ended and point == now[seat] for seat, point in enumerate(points)]  # for those who look at it
    return state | {"dealt": dealt} | saved_workers(loader, [point.state for point in points], flags)


def saved_workers(loader: Any, states: Sequence[Any], ended: Sequence[bool] = ()) -> dict[str, Any]:
    """In torchdata's layout: at the top when the trainer loads by itself, else by worker."""
    count = max(1, loader.num_workers)
    parts = []
    for seat in range(count):
        of_dataset, of_iterator = (states[seat] if seat < len(states) else None) or (None, None)
        fetcher = {"dataset_iter_state": of_iterator, "fetcher_ended": seat < len(ended) and ended[seat]}
        parts.append({"dataset_state": of_dataset, "fetcher_state": fetcher})
    if not loader.num_workers:
        return parts[0]
    return {"_snapshot": {"_worker_snapshots": {f"worker_{seat}": part for seat, part in enumerate(parts)}}}


def loaded_streams(loader: Any, state: dict[str, Any]) -> Streams:
    """Where the streams of this loader begin, which may have another number of workers."""
    states, entries = _states(state), state.get("streams", [])
    _check_whole(state, entries)
    seats, saved = max(1, loader.num_workers), max(1, state["num_workers"])
    if not state["batch"]:
        return Streams(_spread([START.at(one) for one in states], seats))
    shared = loader.shard, state.get("shard")
    if shared[0] != shared[1]:
        raise StateMismatch("shard", shared[1], shared[0], "the rest of the stream would be divided otherwise")
    dealt = tuple((step, tuple(counts)) for step, counts in state.get("dealt", []))
    step = (state["world"] if loader.shard == "auto" else 1) * saved
    if seats == saved and (loader.shard != "auto" or state["world"] == world_size()):
        points = [_point(entry, one) for entry, one in zip(entries, states)]
        return Streams(tuple(points), dealt, state["before"], tuple(map(_history, entries)))
    if loader.shard is None:
        raise StateMismatch(
            "num_workers",
            state["num_workers"],
            loader.num_workers,
            "each worker has a stream of its own, and only the data set could divide what is left of them. Go on with "
            "as many workers; or let holdfast divide one stream among any number of them: DataLoader(shard='auto')",
        )
    return Streams((), (*dealt, (step, tuple(entry["items"] for entry in entries))), state["batch"])


def _check_whole(state: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    if state["batch"]:
        missing = [name for name in ("streams", "shard", "world", "before") if name not in state]
        missing += [name for name in (*_FEW, "ended") if any(name not in entry for entry in entries)]
        if missing or len(entries) != max(1, state["num_workers"]):
            raise not_whole(missing or ["part for each worker"])


def not_whole(missing: list[str]) -> ValueError:
    """Some ways to keep a dict lose parts of it. To go on without them would be to go on somewhere else."""
    return ValueError(f"the state is not whole: it has no {', '.join(missing)}")


def _point(entry: dict[str, Any], state: tuple[Any, Any] | None) -> Point:
    return Point(state=state, over=entry["ended"], **{name: entry[name] for name in _FEW})


def world_size() -> int:
    return int(_get_distributed_settings()[0])


def _history(entry: dict[str, Any]) -> History:
    return History(*(tuple(entry.get(name, ())) for name in History._fields))


def _states(state: dict[str, Any]) -> list[tuple[Any, Any] | None]:
    parts = list(state["_snapshot"]["_worker_snapshots"].values()) if "_snapshot" in state else [state]
    return [_state(part) for part in parts]


def _state(part: dict[str, Any]) -> tuple[Any, Any] | None:
    fetcher = part.get("fetcher_state") or {}
    pair = part.get("dataset_state"), fetcher.get("dataset_iter_state")
    return None if pair == (None, None) else pair


def _spread(points: list[Point], seats: int) -> tuple[Point, ...]:
    """Between epochs: what all of them have in common holds for any number."""
    if all(point == START for point in points):
        return ()
    if len(points) == seats:
        return tuple(points)
    if any(point != points[0] for point in points):
        raise StateMismatch("num_workers", len(points), seats, "each worker's data set has a state of its own")
    return tuple(points[:1] * seats)
