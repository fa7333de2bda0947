"""States of data sets as plain types, which JSON and ``torch.load(weights_only=True)`` take, and back.

What is plain stays as it is, so that people can look into a state: None, booleans, numbers, strings, lists, dicts with
strings as keys. Anything else becomes a dict that says what it was, ``{"__holdfast__": "tuple", "items": [1, 2]}``, and
comes back as it was, type for type. There is no pickle in it: a state is data and runs nothing.

What does not come back: that two places held the same object; the device, strides and gradient of a tensor, which is on
the CPU then, and the memory order of an array.
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy
import torch

from holdfast.errors import UnsavableState

MARK = "__holdfast__"
_BITS = 1024  # of the largest integer that stays one; torch.load reads 2040, JSON in Python 14,000
_FACTORIES = {None: None, "bool": bool, "dict": dict, "float": float, "int": int, "list": list, "set": set, "str": str}


def to_plain(value: Any, path: str = "state") -> Any:
    """The value as plain types, which share nothing with it. ``path`` is what errors call it."""
    try:
        return _plain(value)
    except _Refused as refused:
        where = "".join(f"[{label!r}]" for label in reversed(refused.labels))
        raise UnsavableState(path + where, refused.kind, refused.reason) from None
    except RecursionError:
        raise UnsavableState(path, type(value).__name__, "it contains itself, or is nested too deeply") from None


def from_plain(value: Any) -> Any:
    """What ``to_plain`` was given."""
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if MARK not in value:
        return {key: from_plain(item) for key, item in value.items()}
    make = _MAKERS.get(value[MARK])
    if make is None:
        raise ValueError(f"{MARK} should be one of {', '.join(_MAKERS)}, but got {value[MARK]!r}")
    return make(value)


class _Refused(Exception):
    """On its way out it collects where it was: labels, the innermost first."""

    def __init__(self, value: Any, reason: str = "") -> None:
        kind = type(value)
        self.kind = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        self.reason = reason
        self.labels: list[Any] = []


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    save = _SAVERS.get(kind)
    if save is not None:
        return save(value)
    if isinstance(value, numpy.generic) and value.dtype.type is kind:
        return _array(value) | {MARK: "scalar"}
    raise _Refused(value)


def _all(labelled: Iterable[tuple[Any, Any]]) -> list[Any]:
    done = []
    for label, item in labelled:
        try:
            done.append(_plain(item))
        except _Refused as refused:
            refused.labels.append(label)
            raise
    return done


def _bytes(data: Any) -> str:
    return base64.b64encode(data).decode()


# -- to plain ------------------------------------------------------------------------------------


def _int(value: int) -> Any:
    return value if value.bit_length() <= _BITS else {MARK: "int", "hex": f"{value:x}"}


def _float(value: float) -> Any:
    return value if math.isfinite(value) else {MARK: "float", "value": str(value)}  # strict JSON has no nan


def _dict(value: dict[Any, Any]) -> Any:
    if MARK not in value and all(type(key) is str for key in value):
        return dict(zip(value, _all(value.items())))
    return {MARK: "dict", "items": _pairs(value)}


def _pairs(value: dict[Any, Any]) -> list[Any]:
    return [list(pair) for pair in zip(_all((key, key) for key in value), _all(value.items()))]


def _items(value: Iterable[Any]) -> list[Any]:
    return _all(enumerate(value))


def _members(value: Iterable[Any]) -> list[Any]:
    return sorted(_all((item, item) for item in value), key=json.dumps)  # the same in every process


def _of(name: str, inner: Callable[[Any], list[Any]]) -> Callable[[Any], Any]:
    return lambda value: {MARK: name, "items": inner(value)}


def _defaultdict(value: defaultdict[Any, Any]) -> Any:
    for name, factory in _FACTORIES.items():
        if factory is value.default_factory:
            return {MARK: "defaultdict", "factory": name, "items": _pairs(value)}
    raise _Refused(value, f"its default_factory {value.default_factory!r} is code")


def _array(value: Any) -> Any:
    dtype = value.dtype
    if dtype.hasobject or numpy.dtype(dtype.str) != dtype:
        raise _Refused(value, f"its dtype is {dtype}")
    return {MARK: "array", "dtype": dtype.str, "shape": list(value.shape), "data": _bytes(value.tobytes())}


def _tensor(value: torch.Tensor) -> Any:
    if value.layout is not torch.strided or value.is_quantized or value.is_meta:
        raise _Refused(value, f"it is not dense: {value.layout}, {value.dtype}, on {value.device}")
    dense = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    data = dense.reshape(-1).view(torch.uint8).numpy().tobytes()
    return {MARK: "tensor", "dtype": _name(value.dtype), "shape": list(value.shape), "data": _bytes(data)}


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


_SAVERS: dict[type, Callable[[Any], Any]] = {
    int: _int,
    float: _float,
    list: _items,
    dict: _dict,
    complex: lambda value: {MARK: "complex", "parts": [_float(value.real), _float(value.imag)]},
    bytes: lambda value: {MARK: "bytes", "data": _bytes(value)},
    bytearray: lambda value: {MARK: "bytearray", "data": _bytes(value)},
    range: lambda value: {MARK: "range", "items": [_int(one) for one in (value.start, value.stop, value.step)]},
    tuple: _of("tuple", _items),
    set: _of("set", _members),
    frozenset: _of("frozenset", _members),
    deque: lambda value: {MARK: "deque", "items": _items(value), "maxlen": value.maxlen},
    OrderedDict: _of("OrderedDict", _pairs),
    Counter: _of("Counter", _pairs),
    defaultdict: _defaultdict,
    numpy.ndarray: _array,
    torch.Tensor: _tensor,
    torch.Size: lambda value: {MARK: "torch.Size", "items": list(value)},
    torch.dtype: lambda value: {MARK: "torch.dtype", "name": _name(value)},
}

# -- and back ------------------------------------------------------------------------------------


def _made_of(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: make(from_plain(value["items"]))


def _made_array(value: Any) -> Any:
    data = bytearray(base64.b64decode(value["data"]))
    return numpy.ndarray(value["shape"], numpy.dtype(value["dtype"]), data)


def _made_tensor(value: Any) -> torch.Tensor:
    data, dtype = bytearray(base64.b64decode(value["data"])), _made_dtype(value["dtype"])
    if not data:
        return torch.empty(value["shape"], dtype=dtype)
    return torch.frombuffer(data, dtype=torch.uint8).view(dtype).reshape(value["shape"])


def _made_dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"this version of torch has no dtype {name!r}")
    return dtype


_MAKERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "int": lambda value: int(value["hex"], 16),
    "float": lambda value: float(value["value"]),
    "complex": lambda value: complex(*from_plain(value["parts"])),
    "bytes": lambda value: base64.b64decode(value["data"]),
    "bytearray": lambda value: bytearray(base64.b64decode(value["data"])),
    "range": lambda value: range(*from_plain(value["items"])),
    "tuple": _made_of(tuple),
    "set": _made_of(set),
    "frozenset": _made_of(frozenset),
    "deque": lambda value: deque(from_plain(value["items"]), value["maxlen"]),
    "dict": _made_of(dict),
    "OrderedDict": _made_of(OrderedDict),
    "Counter": lambda value: Counter(dict(from_plain(value["items"]))),
    "defaultdict": lambda value: defaultdict(_FACTORIES[value["factory"]], from_plain(value["items"])),
    "array": _made_array,
    "scalar": lambda value: _made_array(value)[()],
    "tensor": _made_tensor,
    "torch.Size": _made_of(torch.Size),
    "torch.dtype": lambda value: _made_dtype(value["name"]),
}
