"""Functions on their way to the workers: packed once, sent once to each life, and from then on a number."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from holdfast._core.events import Worker
from holdfast._worker.life import is_recipe
from holdfast._worker.task_worker import RECIPES
from holdfast.recipe import per_worker

from .outlet import Outlet, Sent

KEPT = 256  # functions that are remembered, packed


class Kit:
    """A function and how it is called. ``known`` are the lives that it was sent to."""

    __slots__ = ("error", "function", "kept", "known", "number", "resource", "seconds", "sent", "users", "uses")

    def __init__(self, number: int, function: Callable[..., Any], resource: Any) -> None:
        self.number, self.function, self.resource, self.uses = number, function, resource, _uses(function)
        self.sent: Sent | None = None
        self.error: Exception | None = None  # it cannot be packed
        self.known: set[Worker] = set()
        self.users = 0  # calls that are not done, and those who will make more of them
        self.kept = False  # for whoever comes
        self.seconds = math.inf  # that a call took, in the latest task

    @property
    def name(self) -> str:
        found = getattr(self.function, "func", self.function)  # of a partial
        return str(getattr(found, "__qualname__", None) or type(found).__qualname__)

    def is_same(self) -> bool:
        """Whether all that it refers to is what it was."""
        if not self.uses:
            return self.uses is not None
        return all(scope.get(name) is value for scope, name, value in self.uses)


class Kits:
    """Owned by a pool, and used under its lock.

    A function is packed once if packing it again would give the same: a plain one, that refers to nothing but code,
    modules and constants. Others are packed for each call, with what they refer to as it is then.

    A kit that nobody uses may be gone at any moment: ``of`` is for a call that is submitted before the lock is let go.
    """

    def __init__(self, outlet: Outlet) -> None:
        self._outlet, self._numbers = outlet, itertools.count()
        self._kept: dict[Any, Kit] = {}
        self._recipes: dict[int, tuple[Any, int, Any]] = {}  # by the id of what is kept here, so that it stays its own
        self._recipe_numbers = itertools.count()

    def of(self, function: Callable[..., Any], shape: str, resource: Any = None) -> Kit:
        key = id(function), shape, id(resource)
        kit = self._kept.get(key)
        if kit is not None and kit.is_same():
            return kit
        if kit is not None:
            self._let_go(key)
        kit = Kit(next(self._numbers), function, resource)
        try:
            kit.sent = self._outlet.pack((function, shape, self._numbered(resource)))
        except Exception as error:
            kit.error = error
            return kit
        if kit.uses is not None:
            if len(self._kept) >= KEPT:
                self._let_go(next(iter(self._kept)))
            self._kept[key], kit.kept = kit, True
        return kit

    def keep(self, function: Callable[..., Any], shape: str, resource: Any = None) -> Kit:
        """For somebody who has several calls to make, until it is released."""
        kit = self.of(function, shape, resource)
        kit.users += 1
        return kit

    def _let_go(self, key: Any) -> None:
        """Workers that know it are told when the last of its calls is done, if there is one."""
        self._kept.pop(key).kept = False

    def _numbered(self, resource: Any) -> tuple[int, Any] | None:
        """A recipe, and a number by which workers know that they have made it, whichever function it is for."""
        if resource is None:
            return None
        known = self._recipes.get(id(resource))
        if known is None:
            recipe = resource if is_recipe(resource) else per_worker(resource)
            if len(self._recipes) >= RECIPES:
                self._recipes.pop(next(iter(self._recipes)))
            known = self._recipes[id(resource)] = resource, next(self._recipe_numbers), recipe
        return known[1], known[2]


Use = tuple[dict[str, Any], str, Any]  # a name in a scope, and what it stood for
_CODE = (FunctionType, type, ModuleType, BuiltinFunctionType)
_CONSTANTS = (int, float, complex, str, bytes, bool, type(None))


def _uses(function: Any) -> list[Use] | None:
    """What a function takes from around it, with the functions of the program that it calls. [] for one of a module,
    which travels by its name. None: it is no plain function, or it refers to what may be something else the next time.
    """
    if isinstance(function, BuiltinFunctionType):
        return [] if isinstance(function.__self__, ModuleType) else None
    if not isinstance(function, FunctionType):
        return None
    found: list[Use] = []
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or _travels_by_name(one):
            continue
        seen.add(id(one))
        uses = [(one.__globals__, name, one.__globals__.get(name)) for name in _names(one.__code__)]
        values = [*(one.__defaults__ or ()), *(value for _, _, value in uses)]
        if one.__closure__ or one.__kwdefaults__ or not all(map(_is_constant, values)):
            return None
        found += uses
        waiting += [value for value in values if isinstance(value, FunctionType)]
    return found


def _is_constant(value: Any) -> bool:
    return isinstance(value, _CODE) or type(value) in _CONSTANTS


def _travels_by_name(function: FunctionType) -> bool:
    """It is of a module other than the program itself."""
    return function.__module__ not in ("__main__", "__mp_main__") and "<locals>" not in function.__qualname__


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
