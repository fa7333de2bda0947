"""Whether a state fits a loader: what cannot be gone on with exactly is an error that says why."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from holdfast.errors import StateMismatch, StateTooNew
from holdfast.sampling.sources import kind, shape

from .saving import FORMAT, length_of
from .streams import loaded_streams, not_whole

_NEEDED = ("epoch", "batch", "seed", "order", "springs", "length", "batch_size", "num_workers", "sampler")

_OF_SAMPLER = {
    "none": (),
    "sequential": ("of", "samples"),
    "random": ("of", "samples"),
    "distributed": ("samples", "batches", "seed", "epoch", "shuffle"),
    "other": ("of", "generator", "epoch", "state", "again", "over"),
}


def checked(loader: Any, state: Mapping[str, Any]) -> dict[str, Any]:
    """The state, as one's own. Keys that are not known here are kept and mean nothing."""
    if not isinstance(state, Mapping):
        raise TypeError(f"a state is a dict, as state_dict() gives it, but got {type(state).__name__}")
    if "holdfast" not in state:
        raise ValueError(f"this is not a state of a holdfast loader: it has {sorted(map(str, state))[:8]}")
    if state["holdfast"] > FORMAT:
        raise StateTooNew(state["holdfast"], FORMAT)
    if missing := [name for name in _NEEDED if name not in state]:
        raise not_whole(missing)
    own = deepcopy(dict(state))
    if missing := [
        name for name in _OF_SAMPLER.get(own["sampler"].get("kind"), ("kind",)) if name not in own["sampler"]
    ]:
        raise not_whole([f"sampler.{name}" for name in missing])
    iterable = own["sampler"]["kind"] == "none"
    if iterable != loader._is_iterable:
        names = {True: "iterable", False: "map-style"}
        why = "there is no such place in it"
        raise StateMismatch("data of the kind", names[iterable], names[loader._is_iterable], why)
    if own["batch"]:
        _check_middle(loader, own)
    if iterable:
        loaded_streams(loader, own)
    return own


def _check_middle(loader: Any, state: dict[str, Any]) -> None:
    """In the middle of an epoch its order, and what was given of it, have to be the same."""
    saved = state["sampler"]
    keeps_count = saved["kind"] in ("none", "other") and saved.get("state") is None
    if keeps_count and state["batch_size"] != loader.batch_size:
        why = "how far this epoch is was counted in batches"
        raise StateMismatch("batch_size", state["batch_size"], loader.batch_size, why)
    if loader._is_iterable:
        return
    length = length_of(loader.dataset)
    if state["length"] != length:
        raise StateMismatch("data set length", state["length"], length, "the rest of this epoch would be another")
    _check_sampler(shape(loader._index_sampler).sampler, saved)


def _check_sampler(sampler: Any, saved: dict[str, Any]) -> None:
    here = kind(sampler)
    if saved["kind"] != here:
        raise StateMismatch("sampler", saved["kind"], f"{here} ({type(sampler).__name__})", "its order is another one")
    if here in ("sequential", "random") and saved["of"] != len(sampler):
        raise StateMismatch("sampler length", saved["of"], len(sampler), "the rest of this epoch would be another")
    if here == "distributed":
        for name in ("seed", "shuffle"):
            value = getattr(sampler, name)
            if saved[name] != value:
                raise StateMismatch(f"sampler {name}", saved[name], value, "the order of the epoch hangs on it")
