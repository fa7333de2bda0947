"""What default_collate refuses, and because of which samples.

torch stacks a batch column by column, and of one that it cannot stack it tells no more than two shapes. Here the
columns are gone through again, by its rules, to the one that it refuses, and there the majority is right.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy
import torch

from .collate_types import types_added_by_user
from .describe import one_line

_CELLS = 50_000  # samples times members that are looked at
_LONGEST_MEMBER = 200  # characters of sample[0][0]...: a list may hold itself
_NUMBER = (int, float, numpy.number, numpy.bool_)

Column = tuple[str, Sequence[int], Sequence[Any]]  # a member, with the positions of the samples and its values there


def none_in(samples: Sequence[Any]) -> list[tuple[int, str]]:
    """(position, member) of every None that default_collate would refuse: ``sample``, ``sample['boxes'][0]``."""
    found: list[tuple[int, str]] = []
    for member, positions, values in _columns(samples):
        if any(value is None for value in values) and _refuses([values[0], None]):
            found += [(position, member) for position, value in zip(positions, values) if value is None]
    return sorted(found)


def unequal(samples: Sequence[Any]) -> tuple[str, int, str, int, str] | None:
    """The first difference that default_collate refuses: (member, position, shape, position, shape).

    The first position is one of the majority, the second the first odd one. Where it is not the shape that differs, the
    length, a key or the type stands in its place.
    """
    for member, _, values in _columns(samples):
        if _refuses(values):
            reference, odd = _odd_in(values)
            if not odd:
                return None  # all are alike, and it would take none of them
            shape, other = _difference(values[reference], values[odd[0]])
            return member, reference, shape, odd[0], other
    return None


def odd_ones(samples: Sequence[Any]) -> list[int]:
    """The positions that differ from the majority, so that default_collate takes the others together."""
    left = list(range(len(samples)))
    while left:
        refused = (values for _, _, values in _columns([samples[n] for n in left]) if _refuses(values))
        odd = set(_odd_in(next(refused, [0]))[1])
        if not odd:
            break
        left = [n for position, n in enumerate(left) if position not in odd]
    return sorted(set(range(len(samples))) - set(left))


def _columns(samples: Sequence[Any]) -> Iterator[Column]:
    """All members that default_collate would come to, outer ones first.

    Those inside a member that is None in some of the samples are of the other samples.
    """
    looked = 0
    waiting: deque[Iterator[Column]] = deque([iter([("sample", range(len(samples)), samples)] if samples else [])])
    while waiting:
        for column in waiting.popleft():
            yield column
            looked += len(column[1])
            if looked > _CELLS:
                return
            waiting.append(_columns_inside(*column))


def _columns_inside(member: str, positions: Sequence[int], values: Sequence[Any]) -> Iterator[Column]:
    there = [(position, value) for position, value in zip(positions, values) if value is not None]
    positions, values = [position for position, _ in there], [value for _, value in there]
    if not values or len(member) > _LONGEST_MEMBER or _is_leaf(values[0]) or _refuses(values):
        return
    first = values[0]
    if isinstance(first, Mapping):
        for key in first:
            yield f"{member}[{key!r}]", positions, [value[key] for value in values]
    else:
        names = getattr(first, "_fields", ())
        for number, column in enumerate(zip(*values)):
            yield member + (f".{names[number]}" if names else f"[{number}]"), positions, column


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, Mapping | Sequence) or isinstance(value, (str, bytes, *types_added_by_user()))


def _refuses(values: Sequence[Any]) -> bool:
    """Whether default_collate refuses these values for what they are, whatever they may contain.

    As there, the first of them decides what the others have to be.
    """
    first, others = values[0], values[1:]
    if isinstance(first, tuple(types_added_by_user())):
        return False  # by rules that only the user's function knows
    if isinstance(first, torch.Tensor):
        return any(not isinstance(value, torch.Tensor) or value.shape != first.shape for value in others)
    if isinstance(first, numpy.ndarray):
        return any(_shape_as_tensor(value) != first.shape for value in values)
    if isinstance(first, _NUMBER):
        return not all(isinstance(value, _NUMBER) or _is_number_like(value) for value in others)
    if isinstance(first, str | bytes):
        return False  # they stay a list, whatever the others are
    if isinstance(first, Mapping):
        return not all(_has_keys(value, first) for value in others)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return any(_length(value) < len(first) for value in others)
    if isinstance(first, Sequence):
        return any(_length(value) != len(first) for value in others)
    return True


def _has_keys(value: Any, keys: Mapping[Any, Any]) -> bool:
    return not keys or (isinstance(value, Mapping) and all(key in value for key in keys))


def _is_number_like(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.numel() == 1
    return isinstance(value, numpy.ndarray) and value.ndim == 0


def _shape_as_tensor(value: Any) -> tuple[int, ...] | None:
    """What torch.as_tensor makes of it, which takes numbers and lists too; None when it refuses."""
    if isinstance(value, numpy.ndarray):
        return None if _is_of_objects(value) else value.shape
    try:
        return tuple(torch.as_tensor(value).shape)
    except Exception:
        return None


def _is_of_objects(array: Any) -> bool:
    return isinstance(array, numpy.ndarray) and array.dtype.kind in "SUO"


def _length(value: Any) -> int:
    try:
        return len(value)
    except TypeError:
        return -1


def _odd_in(values: Sequence[Any]) -> tuple[int, list[int]]:
    """Where the majority begins, and the places of all that cannot be with it."""
    groups: dict[Hashable, list[int]] = {}
    for place, value in enumerate(values):
        groups.setdefault(_likeness(value), []).append(place)
    # What would be refused by itself, such as None, is no majority however often it is there.
    majority = max(groups.values(), key=lambda group: (not _refuses([values[group[0]]]), len(group), -group[0]))
    reference, alike = majority[0], set(majority)
    others = [place for place in range(len(values)) if place not in alike]
    odd = [place for place in others if _refuses([values[n] for n in sorted((place, reference))])]
    return reference, odd or others


def _likeness(value: Any) -> Hashable:
    """The same for values that default_collate takes together."""
    if isinstance(value, torch.Tensor):
        return torch.Tensor, tuple(value.shape)
    if isinstance(value, numpy.ndarray):
        return numpy.ndarray, value.shape, _is_of_objects(value)
    if isinstance(value, _NUMBER):
        return "number"
    if isinstance(value, str | bytes):
        return "text"
    if isinstance(value, Mapping):
        return frozenset(value)
    return len(value) if isinstance(value, Sequence) else type(value).__qualname__


def _difference(one: Any, other: Any) -> tuple[str, str]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        missing, added = [key for key in one if key not in other], [key for key in other if key not in one]
        key = one_line(repr((missing or added)[0]))
        return (f"key {key}", f"no key {key}") if missing else (f"no key {key}", f"key {key}")
    kinds = ["None" if value is None else type(value).__name__ for value in (one, other)]
    sizes = [_size(value) for value in (one, other)]
    if kinds[0] == kinds[1] and all(sizes):
        return sizes[0].removeprefix("of "), sizes[1].removeprefix("of ")
    first, second = (f"{kind} {size}".strip() for kind, size in zip(kinds, sizes))
    return first, second


def _size(value: Any) -> str:
    if isinstance(value, torch.Tensor | numpy.ndarray):
        return str(tuple(value.shape))
    return f"of length {len(value)}" if isinstance(value, Sequence) and not isinstance(value, str | bytes) else ""
