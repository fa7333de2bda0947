"""What a sample looks like: types, shapes and what is wrong with its numbers, as a value that can be counted.

Made for every sample in the worker that read it, so it has to be quick: a few µs for a tensor and a label. What is
looked at, and how closely, has limits: a list by its first members, a dict by its keys as long as they are few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy
import torch

Shape = tuple[int, ...]
MEMBERS = 16  # of a list, that are looked at
KEYS = 64  # of a dict: one with more is a table, and its keys are data
DEEPEST = 8
PATCH = 16  # values that a tensor must have to be called constant: a label is always so
NAN, INF, EMPTY, CONSTANT = "NaN", "Inf", "empty", "constant"


class Look(NamedTuple):
    """``parts``: what is inside, each with how it is reached: ``("['image']", look)``."""

    kind: str
    shape: Shape | None = None
    marks: tuple[str, ...] = ()
    parts: tuple[tuple[str, Look], ...] = ()

    def nodes(self, path: str = "") -> Iterator[tuple[str, Look]]:
        """Itself and all inside, by path."""
        yield path, self
        for step, part in self.parts:
            yield from part.nodes(path + step)


def look_at(sample: Any, depth: int = 0) -> Look:
    """Raises what the sample does when it is looked at: an image that is read only now may be the corrupt one."""
    looker = _LOOKERS.get(type(sample))
    if looker is None:
        looker = _LOOKERS[type(sample)] = _looker(type(sample))
    return looker(sample, depth)


Looker = Callable[[Any, int], Look]


def _looker(kind: type) -> Looker:
    """For a type that is met for the first time."""
    if issubclass(kind, torch.Tensor):
        return _tensor
    if issubclass(kind, numpy.ndarray):
        return _array
    if issubclass(kind, Mapping):
        return _mapping
    if issubclass(kind, tuple):
        return _tuple
    if issubclass(kind, list):
        return _list
    if issubclass(kind, float | numpy.floating):
        return _number(kind)
    if is_dataclass(kind):
        return _record
    if kind.__module__.startswith("PIL."):
        return _image
    constant = Look(_name(kind))
    return lambda sample, depth: constant


# -- leaves ------------------------------------------------------------------------------------

CACHED = 10_000  # looks, and names, that are kept
_WELL: dict[Any, Look] = {}  # of tensors and arrays, by type and shape: those that have no marks
_NAMES: dict[Any, tuple[str, list[str]]] = {}


def _tensor(sample: torch.Tensor, depth: int) -> Look:
    marks = _marks_of_tensor(sample)
    return _leaf(sample.dtype, sample.shape, marks, lambda dtype: f"{str(dtype).removeprefix('torch.')} tensor")


def _marks_of_tensor(sample: torch.Tensor) -> tuple[str, ...]:
    count = sample.numel()
    if not count:
        return (EMPTY,)
    try:
        if _is_well(sample, count):
            return ()
        least, most = torch.aminmax(sample.detach())
        return _marks(least.item(), most.item(), count, lambda: bool(sample.isinf().any()))
    except Exception:  # a kind of tensor that has no order (complex, sparse, on no device): nothing is said of it
        return ()


def _is_well(sample: torch.Tensor, count: int) -> bool:
    """Whether it has no marks for sure, in half the time of ``aminmax`` or less: a sum is NaN or Inf if a value is."""
    if count < PATCH and sample.ndim < 2:
        values: Any = sample.tolist()
        return math.isfinite(sum(values) if sample.ndim else values)
    if sample.is_floating_point() and not math.isfinite(sample.sum().item()):
        return False
    return count < PATCH or _corners_differ(sample)


def _corners_differ(sample: Any) -> bool:
    return bool(sample[(0,) * sample.ndim].item() != sample[(-1,) * sample.ndim].item())


def _array(sample: numpy.ndarray[Any, Any], depth: int) -> Look:
    return _leaf(sample.dtype, sample.shape, _marks_of_array(sample), lambda dtype: f"{dtype} array")


def _marks_of_array(sample: numpy.ndarray[Any, Any]) -> tuple[str, ...]:
    if not sample.size:
        return (EMPTY,)
    if sample.dtype.kind not in "biuf" or (sample.dtype.kind != "f" and _corners_differ(sample)):
        return ()
    return _marks(sample.min().item(), sample.max().item(), sample.size, lambda: bool(numpy.isinf(sample).any()))


def _leaf(dtype: Any, shape: Shape, marks: tuple[str, ...], name: Callable[[Any], str]) -> Look:
    look = _WELL.get((dtype, shape))
    if look is None:
        look = Look(f"{name(dtype)}, {len(shape)}-d", tuple(shape))
        if len(_WELL) < CACHED:
            _WELL[dtype, shape] = look
    return look if not marks else look._replace(marks=marks)


def _marks(least: float, most: float, count: int, some_infinite: Callable[[], bool]) -> tuple[str, ...]:
    """From the least and the greatest value, both of which are NaN where one is."""
    if least != least:
        return (NAN, INF) if some_infinite() else (NAN,)
    if math.isinf(least) or math.isinf(most):
        return (INF,)
    return (CONSTANT,) if least == most and count >= PATCH else ()


def _number(kind: type) -> Looker:
    usual, nan, infinite = (Look(_name(kind), None, marks) for marks in ((), (NAN,), (INF,)))

    def look(sample: float, depth: int) -> Look:
        if math.isfinite(sample):
            return usual
        return nan if sample != sample else infinite

    return look


def _text(sample: Any, depth: int) -> Look:
    return _TEXTS[type(sample), bool(sample)]


def _image(sample: Any, depth: int) -> Look:
    """Of Pillow. It reads a file when its pixels are asked for, and that is when a truncated one fails."""
    if not hasattr(sample, "load"):
        return Look(_name(type(sample)))
    sample.load()
    return Look(f"image {sample.mode}", (sample.height, sample.width))


# -- what has parts ----------------------------------------------------------------------------


def _tuple(sample: tuple[Any, ...], depth: int) -> Look:
    if len(sample) > KEYS or depth >= DEEPEST:
        return _list(sample, depth)
    name, steps = _members((type(sample), len(sample)), lambda: _of_tuple(type(sample), len(sample)))
    return Look(name, None, (), tuple([(step, look_at(part, depth + 1)) for step, part in zip(steps, sample)]))


def _of_tuple(kind: type, length: int) -> tuple[str, list[str]]:
    return f"{_name(kind)} of {length}", [f"[{place}]" for place in range(length)]


def _members(key: Any, make: Callable[[], tuple[str, list[str]]]) -> tuple[str, list[str]]:
    """Its name, and how its parts are reached; made once for each kind."""
    found = _NAMES.get(key)
    if found is None:
        found = make()
        if len(_NAMES) < CACHED:
            _NAMES[key] = found
    return found


def _list(sample: Any, depth: int) -> Look:
    """Its length is a shape, as it often varies. The members count as one, in each of the ways they look."""
    name, shape = _name(type(sample)), (len(sample),)
    if not sample:
        return Look(name, shape, (EMPTY,))
    if depth >= DEEPEST:
        return Look(name, shape)
    members = dict.fromkeys(look_at(part, depth + 1) for part in islice(sample, MEMBERS))
    return Look(name, shape, (), tuple([("[…]", member) for member in members]))


def _mapping(sample: Mapping[Any, Any], depth: int) -> Look:
    if len(sample) > KEYS or depth >= DEEPEST:
        return Look(_name(type(sample)), (len(sample),))
    name, steps = _members((type(sample), *sample), lambda: _of_mapping(sample))
    parts = [(step, look_at(value, depth + 1)) for step, value in zip(steps, sample.values())]
    return Look(name, None, (), tuple(parts))


def _of_mapping(sample: Mapping[Any, Any]) -> tuple[str, list[str]]:
    return f"{_name(type(sample))} of {', '.join(sorted(map(str, sample)))}", [f"[{key!r}]" for key in sample]


def _record(sample: Any, depth: int) -> Look:
    name = _name(type(sample))
    if depth >= DEEPEST:
        return Look(name)
    members = [(field.name, getattr(sample, field.name, None)) for field in fields(sample)]
    return Look(name, None, (), tuple([(f".{key}", look_at(value, depth + 1)) for key, value in members]))


def _name(kind: type) -> str:
    return f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}".removeprefix("builtins.")


_NONE = Look("None")
_TEXTS = {(kind, full): Look(kind.__name__, None, () if full else (EMPTY,)) for kind in (str, bytes) for full in (0, 1)}
_LOOKERS: dict[type, Looker] = {
    torch.Tensor: _tensor,
    str: _text,
    bytes: _text,
    type(None): lambda sample, depth: _NONE,
}
