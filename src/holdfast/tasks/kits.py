"""Functions on their way to the workers: packed once, sent once to each life, and from then on a number."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from holdfast._core.events import Worker
from holdfast._worker.life import is_recipe
from holdfast.recipe import per_worker

from .outlet import Outlet, Sent

KEPT = 256  # functions that are remembered, packed


class Kit:
    """A function and how it is called. ``known`` are the lives that it was sent to."""

    __slots__ = ("calls", "error", "function", "known", "number", "sent", "used")

    def __init__(self, number: int, function: Callable[..., Any], used: list[Any] | None) -> None:
        self.number, self.function, self.used = number, function, used
        self.sent: Sent | None = None
        self.error: Exception | None = None  # it cannot be packed
        self.known: set[Worker] = set()
        self.calls = 0  # that are not done

    @property
    def name(self) -> str:
        found = getattr(self.function, "func", self.function)  # of a partial
        return str(getattr(found, "__qualname__", None) or type(found).__qualname__)


class Kits:
    """Owned by a pool. A function is packed once if packing it again would give the same: a plain one, that refers to
    nothing but code, modules and constants. Others are packed for each call, with what they refer to as it is then."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet, self._numbers = outlet, itertools.count()
        self._kept: dict[Any, Kit] = {}
        self._recipes: dict[int, tuple[Any, Any]] = {}

    def of(self, function: Callable[..., Any], shape: str, resource: Any = None) -> Kit:
        key = id(function), shape, id(resource)
        kit = self._kept.get(key)
        if kit is not None and kit.used is not None and _same(kit.used, _used_by(function)):
            return kit
        kit = Kit(next(self._numbers), function, _constants(function))
        try:
            kit.sent = self._outlet.pack((function, shape, self._recipe(resource)))
        except Exception as error:
            kit.error = error
            return kit
        if kit.used is not None:
            if len(self._kept) >= KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = kit
        return kit

    def is_kept(self, kit: Kit) -> bool:
        return any(kept is kit for kept in self._kept.values())

    def forget(self, who: Worker) -> None:
        for kit in self._kept.values():
            kit.known.discard(who)

    def _recipe(self, resource: Any) -> Any:
        """The same for the same function: what a worker has made, it has."""
        if resource is None or is_recipe(resource):
            return resource
        if id(resource) not in self._recipes:
            self._recipes[id(resource)] = resource, per_worker(resource)
        return self._recipes[id(resource)][1]


_CODE = (FunctionType, type, ModuleType, BuiltinFunctionType)
_CONSTANTS = (int, float, complex, str, bytes, bool, type(None))


def _constants(function: Any) -> list[Any] | None:
    """What it refers to, if all of that is code or constant; None if it may be something else the next time."""
    used = _used_by(function)
    if used is None or not all(isinstance(each, _CODE) or type(each) in _CONSTANTS for each in used):
        return None
    return used


def _same(before: list[Any], now: list[Any] | None) -> bool:
    return now is not None and len(before) == len(now) and all(a is b for a, b in zip(before, now, strict=True))


def _used_by(function: Any) -> list[Any] | None:
    """What a function of this program takes from around it, with the functions that it calls; [] for one of a module
    that can be imported, which travels by its name. None: not a plain function."""
    if isinstance(function, BuiltinFunctionType):
        return [] if isinstance(function.__self__, ModuleType) else None
    if not isinstance(function, FunctionType):
        return None
    found: list[Any] = []
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or _is_named(one):
            continue
        seen.add(id(one))
        if one.__closure__ or one.__kwdefaults__:
            return None
        used = [*(one.__defaults__ or ()), *(one.__globals__.get(name) for name in _names(one.__code__))]
        found += used
        waiting += [each for each in used if isinstance(each, FunctionType)]
    return found


def _is_named(function: FunctionType) -> bool:
    """Whether it travels by its name: of a module other than the program itself."""
    return function.__module__ not in ("__main__", "__mp_main__") and "<locals>" not in function.__qualname__


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
