"""The objects that belong to a data set, each with the path that a user would write."""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from .anatomy import anatomy

FIRST = 8  # of a long container are looked at, beside the middle and the last
_LONGEST_KEY = 40
_PLAIN_KEYS = (type(None), bool, int, float, str, bytes)


@dataclass(frozen=True)
class Limits:
    """How far a walk goes: steps from the root, objects in all, and members of one container before it is sampled."""

    depth: int = 10
    objects: int = 3000
    members: int = 64


USUAL = Limits()


def walk(root: object, name: str = "dataset", limits: Limits = USUAL) -> Iterator[tuple[str, object]]:
    """Each object once, by its shortest path, nearest first: an owner comes before what it owns. Never raises."""
    pending: deque[tuple[str, object, int]] = deque([(name, root, 0)])
    seen = {id(root): root}  # held, so that no number is used again
    for _ in range(limits.objects):
        if not pending:
            return
        path, value, depth = pending.popleft()
        yield path, value
        if depth == limits.depth or anatomy(value).is_closed:
            continue
        for label, member in _members(value, limits):
            if len(pending) > limits.objects:
                break
            if not anatomy(member).is_atom:
                if id(member) in seen:
                    continue
                seen[id(member)] = member
            pending.append((path + label, member, depth + 1))


def chosen(count: int, most: int) -> list[int]:
    """Which of ``count`` elements are looked at: all, or of many the first few, the middle and the last."""
    return list(range(count)) if count <= most else [*range(FIRST), count // 2, count - 1]


def _members(value: Any, limits: Limits) -> list[tuple[str, Any]]:
    try:
        return [*_elements(value, limits), *_inside_callable(value), *_attributes(value)]
    except Exception:  # an object in the making, or changed by another thread meanwhile
        return []


def _elements(value: Any, limits: Limits) -> Iterator[tuple[str, Any]]:
    container = anatomy(value).container
    if container is None:
        return
    if container is dict:
        yield from ((f"[{_key(key)}]", member) for key, member in _items(value, limits))
    elif container is set or container is frozenset:
        count = FIRST if container.__len__(value) > limits.members else limits.members
        yield from ((".<item>", member) for member in islice(container.__iter__(value), count))
    else:
        for i in chosen(container.__len__(value), limits.members):
            yield f"[{i}]", container.__getitem__(value, i)


def _items(value: dict[Any, Any], limits: Limits) -> list[tuple[Any, Any]]:
    count = dict.__len__(value)
    items = list(islice(dict.items(value), count if count <= limits.members else FIRST))
    if count > limits.members:
        last = next(dict.__reversed__(value))
        items.append((last, dict.__getitem__(value, last)))
    return items


def _key(key: object) -> str:
    """A key as one would write it; of a class of the user's the name only, as its ``__repr__`` is not ours to run."""
    if not any(type(key) is plain for plain in _PLAIN_KEYS):
        return f"<{anatomy(key).name}>"
    text = repr(key)
    return text if len(text) <= _LONGEST_KEY else f"{text[:_LONGEST_KEY]}..."


def _inside_callable(value: Any) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if kind is types.FunctionType:
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            try:
                yield f".<closure>.{name}", cell.cell_contents
            except ValueError:
                pass  # not assigned
        yield from ((f".__defaults__[{i}]", default) for i, default in enumerate(value.__defaults__ or ()))
        yield from ((f".__kwdefaults__[{key!r}]", default) for key, default in (value.__kwdefaults__ or {}).items())
    elif kind is types.MethodType or kind is types.BuiltinMethodType:
        yield ".__self__", value.__self__
    elif ("functools", "partial") in anatomy(value).bases:
        for name in ("func", "args", "keywords"):
            yield f".{name}", functools.partial.__dict__[name].__get__(value)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    is_torch_module = ("torch", "Module") in anatomy(value).bases
    for name, member in anatomy(value).attributes(value):
        if is_torch_module and name == "_modules":
            for child, module in dict.items(member):
                yield f"[{child}]" if child.isdigit() else f".{child}", module
        else:
            yield f".{name}", member
