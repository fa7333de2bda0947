"""What a sample is: its parts with their types, shapes and extremes, and a digest by which two of them are compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy
import torch

from holdfast._worker.digests import parts

MEMBERS = 16  # of a list or dict, that are shown
_DEPTH = 6
_TEXT = 60  # characters of a value


class Leaf(NamedTuple):
    """One part of a sample. ``path`` is how to get there: ``[0]["image"]``."""

    path: str
    type: str
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    low: float | None = None
    high: float | None = None
    nan: int = 0
    infinite: int = 0
    value: str = ""


def portrait(sample: Any) -> list[Leaf]:
    return list(_leaves(sample, "", _DEPTH))


def digest(sample: Any) -> str:
    """Of all that is in it; empty where that cannot be told."""
    found = hashlib.blake2b(digest_size=8)
    try:
        for part in parts(sample, whole=True):
            found.update(part)
    except Exception:  # an object that cannot be pickled: there is nothing to compare
        return ""
    return found.hexdigest()


def _leaves(value: Any, path: str, depth: int) -> Iterator[Leaf]:
    members = list(_members(value)) if depth else []
    if members:
        for key, member in members[:MEMBERS]:
            yield from _leaves(member, f"{path}{key}", depth - 1)
        if len(members) > MEMBERS:
            yield Leaf(f"{path}…", f"{len(members) - MEMBERS} more")
        return
    kind = _name(type(value))
    if isinstance(value, torch.Tensor):
        yield _of_numbers(path, kind, value.detach())
    elif isinstance(value, numpy.ndarray):
        yield _of_numbers(path, kind, value)
    else:
        yield Leaf(path, kind, value=_shortened(value))


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", member) for key, member in value.items())
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from ((f".{name}", member) for name, member in zip(value._fields, value))
    elif isinstance(value, tuple | list):
        yield from ((f"[{place}]", member) for place, member in enumerate(value))


def _of_numbers(path: str, kind: str, values: Any) -> Leaf:
    shape, dtype = tuple(values.shape), str(values.dtype).removeprefix("torch.")
    try:
        numbers = torch.as_tensor(values).to("cpu", torch.float64).flatten()
    except (TypeError, RuntimeError):  # of objects, texts, or complex
        return Leaf(path, kind, shape, dtype)
    finite = numbers[numbers.isfinite()]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (None, None)
    return Leaf(path, kind, shape, dtype, low, high, int(numbers.isnan().sum()), int(numbers.isinf().sum()))


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.").removeprefix("torch.")


def _shortened(value: Any) -> str:
    try:
        text = " ".join(repr(value).split())
    except Exception as error:  # an object that cannot show itself is a part of the sample all the same
        text = f"<its repr raised {type(error).__name__}>"
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 1]}…"
