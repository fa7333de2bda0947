"""Looks through a value for what can be shared, and makes the same value again with that in shared memory."""

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy
import torch
from torch.nn import Module, Parameter
from torch.utils.data import Dataset

from holdfast.errors import CannotShare

from .arrays import SharedArray
from .memory import Memory, memory_of
from .packed import PackedList, PackedText
from .packed_dict import PackedDict, stable_hash
from .stowing import Found
from .tensors import ReadOnlyTensor, SharedParameter, SharedTensor, as_shared

LARGE = 1024  # elements from which a list or dict is packed
LONG = 1 << 16  # bytes or characters from which a string is
_SAMPLED = 64
_PACKED = (PackedList, PackedDict, PackedText)
_TENSORS = (SharedTensor, ReadOnlyTensor, SharedParameter)
_MAPPINGS = (dict, OrderedDict, defaultdict)
_OWN = (numpy.ndarray, torch.Tensor, Module, Dataset, *_PACKED)  # what is looked into where it is met

Made = list[Any]
Plan = Callable[[Made], Any]
"""Makes a value again, from all leaves in shared memory, in order. None instead of one: it stays as it is."""


class Survey:
    """One look through one value. ``leaves`` are what is to be put into shared memory: arrays, tensors, long lists,
    dicts and strings."""

    def __init__(self, readonly: bool) -> None:
        self.leaves: list[Found] = []
        self._readonly = readonly
        self._plans: dict[int, Plan | None] = {}
        self._visiting: set[int] = set()
        self._met: list[Any] = []  # alive while their ids are in use

    def plan(self, value: Any, path: str, *, is_root: bool = False) -> Plan | None:
        """The plan for a value; one that is met again is the same thing again."""
        if id(value) in self._plans:
            return self._plans[id(value)]
        if id(value) in self._visiting:
            raise CannotShare(path, _name(value), "it contains itself")
        self._visiting.add(id(value))
        plan = self._plan(value, path, is_root)
        self._visiting.remove(id(value))
        self._met.append(value)
        self._plans[id(value)] = plan = _once(plan)
        return plan

    def _plan(self, value: Any, path: str, is_root: bool) -> Plan | None:
        if isinstance(value, Module):
            return self._module(value, path)
        if isinstance(value, torch.Tensor):
            return self._tensor(value, path, is_root)
        if isinstance(value, SharedArray):
            return None if self._will_do(value._memory) else self._leaf(numpy.asarray(value), path)
        if type(value) is numpy.ndarray and not value.dtype.hasobject:
            return self._leaf(value, path)
        if isinstance(value, _PACKED):
            return None
        if type(value) in (str, bytes):
            return self._leaf(value, path) if len(value) >= LONG else None
        if type(value) in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_make")):
            return self._leaf(value, path) if _can_pack(value, value) else self._sequence(value, path)
        if type(value) in _MAPPINGS:
            return self._leaf(value, path) if _can_pack_dict(value) else self._mapping(value, path)
        if hasattr(value, "__dict__") and (is_root or isinstance(value, Dataset)) and not isinstance(value, type):
            return self._object(value, path)
        if is_root:
            raise CannotShare(path, _name(value), "there is nothing in it that could lie in shared memory")
        return None

    def _will_do(self, memory: Memory | None) -> bool:
        """Whether what lies there is shared as it is wanted."""
        return memory is not None and (memory.readonly or not self._readonly)

    def _leaf(self, value: Any, path: str) -> Plan:
        self.leaves.append(Found(value, path))
        number = len(self.leaves) - 1
        return lambda made: made[number]

    def _tensor(self, value: torch.Tensor, path: str, is_root: bool) -> Plan | None:
        memory = memory_of(value)
        if memory is not None and self._will_do(memory):
            return None if isinstance(value, _TENSORS) else lambda made: as_shared(value, memory)
        strided = value.layout is torch.strided and not value.is_quantized and not value.is_nested
        if type(value) in (torch.Tensor, Parameter, *_TENSORS) and value.device.type == "cpu" and strided:
            return self._leaf(value, path)
        if is_root:
            raise CannotShare(path, _name(value), "only strided tensors of the CPU lie in memory that can be shared")
        return None

    def _sequence(self, value: Any, path: str) -> Plan | None:
        plans = [self.plan(part, f"{path}[{i}]") for i, part in enumerate(value)]
        if not any(plans):
            return None
        kind = type(value)
        rebuild = getattr(kind, "_make", kind)  # of a named tuple
        return lambda made: rebuild([plan(made) if plan else part for plan, part in zip(plans, value, strict=True)])

    def _mapping(self, value: Any, path: str) -> Plan | None:
        parts = self._parts((key, part, f"{path}[{key!r}]") for key, part in value.items())
        return _replacing(value, parts, copy.copy, dict.__setitem__)

    def _object(self, value: Any, path: str) -> Plan | None:
        parts = self._parts((name, part, f"{path}.{name}") for name, part in vars(value).items())
        return _replacing(value, parts, _twin, lambda twin, name, part: twin.__dict__.__setitem__(name, part))

    def _parts(self, items: Iterable[tuple[Any, Any, str]]) -> dict[Any, Plan]:
        """The plans for those parts that do not stay as they are."""
        return {key: plan for key, part, path in items if (plan := self.plan(part, path))}

    def _module(self, module: Module, path: str) -> Plan:
        """In place, as ``module.share_memory()``: optimizers and other modules hold these very parameters."""
        named = (*module.named_parameters(), *module.named_buffers())
        plans = [(tensor, self.plan(tensor, f"{path}.{name}")) for name, tensor in named]

        def move(made: Made) -> Module:
            for tensor, plan in plans:
                if plan is not None:
                    shared = plan(made)
                    tensor.data = shared.as_subclass(torch.Tensor).detach()
                    tensor.__class__ = type(shared)
            return module

        return move


def _replacing(value: Any, plans: dict[Any, Plan], twin: Callable[[Any], Any], put: Callable[..., None]) -> Plan | None:
    """Make a twin of ``value`` with these parts replaced."""
    if not plans:
        return None

    def make(made: Made) -> Any:
        other = twin(value)
        for key, plan in plans.items():
            put(other, key, plan(made))
        return other

    return make


def _once(plan: Plan | None) -> Plan | None:
    """What was met in two places is one thing in both again."""
    results: list[Any] = []

    def made_once(made: Made) -> Any:
        if not results:
            assert plan is not None
            results.append(plan(made))
        return results[0]

    return made_once if plan else None


def _twin(value: Any) -> Any:
    twin = object.__new__(type(value))
    vars(twin).update(vars(value))
    return twin


def _can_pack(value: Any, elements: Any) -> bool:
    """Whether it is long, and its elements are data and no more."""
    if type(value) not in (list, tuple, dict) or len(elements) < LARGE:
        return False
    kinds = set(map(type, elements))
    if any(kind.__module__ == "__main__" or issubclass(kind, _OWN) for kind in kinds):
        return False
    step = len(elements) // _SAMPLED
    return not any(isinstance(part, _OWN) for i in range(_SAMPLED) for part in _members(elements[i * step]))


def _can_pack_dict(value: Any) -> bool:
    if type(value) is not dict or len(value) < LARGE or not _can_pack(value, list(value.values())):
        return False
    try:
        return all(stable_hash(key) is not None for key in value)
    except TypeError:
        return False


def _members(value: Any) -> Iterable[Any]:
    if type(value) is dict:
        return value.values()
    return value if type(value) in (list, tuple) else ()


def _name(value: Any) -> str:
    return type(value).__qualname__
