"""What the trainer changes on its data set, for workers that have a copy from before.

Carried are plain values under public names, and the epoch: a private name is the object's own bookkeeping (``_opened``
means nothing in a process that has not opened it). What is larger or private is for ``DataLoader.broadcast``.
"""

from __future__ import annotations

import inspect
import pickle
from typing import Any, NamedTuple

import cloudpickle
from torch.utils.data import IterDataPipe, MapDataPipe

from holdfast.audit.anatomy import anatomy, attributes

Path = tuple[str | int, ...]  # to a data set inside another: ("dataset",), ("datasets", 2)
Place = tuple[Path, str]

_DEEPEST = 4
_MOST_PARTS = 64
_LONGEST = 1024
_EPOCHS = ("epoch", "_epoch")
_ATOMS = (type(None), bool, int, float, str)


class Changes(NamedTuple):
    """Since the data set was shipped, for a new life; and since the last epoch, for workers that are there."""

    all: bytes | None = None
    new: bytes | None = None


UNCHANGED = Changes()


class Attributes:
    """A data set as it was shipped to one crew, and what was changed since. Owned by the crew's iterator."""

    def __init__(self, dataset: object) -> None:
        self._dataset, self._seen = dataset, _plain(dataset)
        self._all: dict[Place, bytes] = {}
        self._new: dict[Place, bytes] = {}

    def set(self, place: Place, packed: bytes) -> None:
        """Somebody set this one on purpose."""
        self._new[place] = packed

    def changes(self) -> Changes:
        """What a new epoch has to begin with."""
        now = _plain(self._dataset)
        for place, value in now.items():
            if place not in self._seen or _differ(self._seen[place], value):
                self._new.setdefault(place, pickle.dumps(value))
        self._seen = now
        self._all.update(self._new)
        made = Changes(_packed(self._all), _packed(self._new))
        self._new.clear()
        return made


def find(dataset: object, name: str) -> tuple[Path, Any]:
    """The data set, or the one inside it, that has an attribute of this name."""
    for path, part in _parts(dataset).items():
        if hasattr(part, name):
            return path, part
    raise AttributeError(f"neither the data set ({type(dataset).__name__}) nor one inside it has an attribute {name!r}")


def pack(value: object) -> bytes:
    return bytes(cloudpickle.dumps(value))


def apply(dataset: object, packed: bytes) -> None:
    """In the worker: what was changed in the trainer."""
    parts, changed = _parts(dataset), pickle.loads(packed)
    for (path, name), value in changed.items():
        if path in parts:
            _set(parts[path], name, pickle.loads(value))


def _set(part: Any, name: str, value: object) -> None:
    if name in _EPOCHS and _takes(getattr(part, "set_epoch", None), value):
        part.set_epoch(value)  # it may do more than keep the number
    try:
        setattr(part, name, value)
    except AttributeError:  # frozen, and changed in the trainer all the same
        object.__setattr__(part, name, value)


def _takes(function: Any, value: object) -> bool:
    try:
        inspect.signature(function).bind(value)
    except (TypeError, ValueError):
        return False
    return True


def _plain(dataset: object) -> dict[Place, Any]:
    return {
        (path, name): value
        for path, part in _parts(dataset).items()
        for name, value in attributes(part).items()
        if (name in _EPOCHS or not name.startswith("_")) and _is_plain(value)
    }


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return len(value) <= _LONGEST and all(type(member) in _ATOMS for member in value)
    return type(value) in _ATOMS and (type(value) is not str or len(value) <= _LONGEST)


def _differ(one: Any, other: Any) -> bool:
    return type(one) is not type(other) or bool(one != other)


def _packed(changed: dict[Place, bytes]) -> bytes | None:
    return pickle.dumps(changed) if changed else None


def _parts(dataset: object) -> dict[Path, Any]:
    """The data set and those inside it, as ``Subset`` and ``ConcatDataset`` hold them."""
    parts: dict[Path, Any] = {}
    pending: list[tuple[Path, object, int]] = [((), dataset, 0)]
    while pending and len(parts) < _MOST_PARTS:
        path, part, depth = pending.pop(0)
        if isinstance(part, IterDataPipe | MapDataPipe):
            continue  # torch has its own ways with them
        parts[path] = part
        if depth < _DEEPEST:
            pending += [((*path, *step), inner, depth + 1) for step, inner in _inside(part)]
    return parts


def _inside(part: object) -> list[tuple[Path, object]]:
    own = attributes(part)
    inner: list[tuple[Path, object]] = [(("dataset",), own["dataset"])] if "dataset" in own else []
    several = own.get("datasets")
    if isinstance(several, list | tuple):
        inner += [(("datasets", i), each) for i, each in enumerate(several[:_MOST_PARTS])]
    return [(step, each) for step, each in inner if not anatomy(each).is_atom]
