"""Which member of an object cannot be pickled: the path to it, as one would write it in code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType
from typing import Any

from .packer import take_apart

DEEPEST = 12


def members(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, with the label that leads to it: ``.store``, ``[3]``."""
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", member) for key, member in value.items())
    elif isinstance(value, list | tuple | set):
        yield from ((f"[{i}]", member) for i, member in enumerate(value))
    if dataclasses.is_dataclass(value) or hasattr(value, "__dict__"):
        yield from ((f".{key}", member) for key, member in vars(value).items())
    if getattr(value, "__closure__", None):
        names = value.__code__.co_freevars
        yield from ((f" (its variable {n})", c.cell_contents) for n, c in zip(names, value.__closure__, strict=False))
    if isinstance(value, FunctionType):
        scope = value.__globals__
        yield from ((f" (its global {name})", scope[name]) for name in value.__code__.co_names if name in scope)
    if hasattr(value, "__self__") and hasattr(value, "__func__"):
        yield ".__self__", value.__self__


def find_culprit(
    value: object,
    name: str,
    attempt: Callable[[object], object] = take_apart,
    members: Callable[[Any], Iterable[tuple[str, Any]]] = members,
) -> tuple[str, str, str] | None:
    """(path, type, reason) of the innermost member on which ``attempt`` fails; None when it does not fail at all."""
    reason = _why_not(value, attempt)
    if reason is None:
        return None
    seen: set[int] = set()
    for _ in range(DEEPEST):
        seen.add(id(value))
        for label, member in members(value):
            why = _why_not(member, attempt) if id(member) not in seen else None
            if why is not None:
                name, value, reason = name + label, member, why
                break
        else:
            break
    return name, _kind(value), reason


def _why_not(value: object, attempt: Callable[[object], object]) -> str | None:
    try:
        attempt(value)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _kind(value: object) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
