"""Many small objects, of which each worker comes to have its own: by unpickling them, or, as a fork, by reading them,
which writes their reference counts and so copies the pages they are on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from .finding import Finding, Severity
from .graph import chosen, walk

LARGE = 16 << 20  # bytes in small objects, below which nobody notices
_SAMPLED = 64
_POINTER = 8
_SIZED = (str, bytes, int, float, tuple, list, dict, set, frozenset)


def large_containers(root: object, name: str = "dataset", large: int = LARGE) -> list[Finding]:
    """Lists and dicts of ``large`` bytes or more in small objects, estimated from a few of these."""
    found = []
    for path, value in walk(root, name):
        count, bytes_each = estimate(value)
        if count * bytes_each >= large:
            why = f"{count:,} objects, about {count * bytes_each >> 20} MiB, of which each worker comes to have a copy"
            fix = f"{name} = holdfast.share({name})  # one copy for all"
            found.append(Finding(path, type(value).__name__, why, fix, Severity.NOTE))
    return found


def estimate(value: Any) -> tuple[int, int]:
    """How many objects, and the bytes that each takes with what it holds and its place."""
    sampled: list[tuple[Any, ...]]
    try:
        if type(value) is dict:
            sampled = list(islice(value.items(), _SAMPLED))
        elif type(value) is list or type(value) is tuple:
            sampled = [(value[i],) for i in chosen(len(value), _SAMPLED)]
        else:
            return 0, 0
    except (IndexError, RuntimeError):  # changed by another thread meanwhile
        return 0, 0
    parts = _met_once([part for element in sampled for part in element])
    total = sum(_size(part) + _POINTER for part in parts)
    return len(value), total // max(1, len(sampled))


def _met_once(objects: list[Any]) -> list[Any]:
    """One that is met twice is one for all: a label, a number."""
    times = Counter(map(id, objects))
    return [one for one in objects if times[id(one)] == 1]


def _size(value: Any) -> int:
    """Bytes of one object and, one level down, of what it holds, estimated from a few of that."""
    sampled = list(_parts(value))
    held = sum(map(_own_size, _met_once(sampled)))
    return _own_size(value) + (held * len(value) // len(sampled) if sampled else 0)


def _own_size(value: object) -> int:
    kind = next((kind for kind in _SIZED if type(value) is kind), object)
    return int(kind.__sizeof__(value))


def _parts(value: Any) -> Iterator[object]:
    if type(value) is list or type(value) is tuple:
        yield from value[:_SAMPLED]
    elif type(value) is dict:
        yield from islice(value.values(), _SAMPLED)
