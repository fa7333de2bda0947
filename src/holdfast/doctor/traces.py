"""What loading samples has changed: attributes of the data set, of its classes, and global variables of its modules.

Seen from outside, by two looks at the values: no code of the user's is run. The generators in a data set are looked at
by ``audit.generators``, which can tell a draw from a seed.
"""

from __future__ import annotations

import sys
import sysconfig
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from holdfast._worker.digests import fingerprint
from holdfast.audit.anatomy import anatomy
from holdfast.audit.graph import walk

_PLAIN = (bool, int, float, complex, str, bytes)
_ARRAYS = (("torch", "Tensor"), ("numpy", "ndarray"))
_GENERATORS = (("random", "Random"), ("numpy", "Generator"), ("numpy", "RandomState"), ("torch", "Generator"))
_LIBRARIES = tuple(path for path in (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")) if path)
Trace = dict[str, tuple[str, Any]]  # by path: kind ("plain", "size", "array", "none") and value


@dataclass(frozen=True)
class Change:
    """``grew``: a container has more in it than before; else a value is another one."""

    path: str
    was: str
    became: str
    grew: bool

    def __str__(self) -> str:
        return f"{self.path}: {self.was} -> {self.became}" + (" entries" if self.grew else "")


def trace(dataset: object) -> Trace:
    """Never raises."""
    found: Trace = {}
    for path, value in _all(dataset):
        try:
            seen = _seen(value)
        except Exception:  # changed while it was looked at
            continue
        if seen is not None:
            found[path] = seen
    return found


def changes(before: Trace, after: Trace) -> list[Change]:
    """What was there before and is another now; what was made when it was first needed is not among them."""
    found: list[Change] = []
    for path, (kind, was) in before.items():
        _, became = after.get(path, (kind, was))
        inside = any(path.startswith((f"{one.path}.", f"{one.path}[")) for one in found)
        if kind == "none" or was == became or inside:
            continue
        grew = kind == "size" and isinstance(became, int) and became > was
        shown = ("", "") if kind == "array" else (repr(was)[:40], repr(became)[:40])
        found.append(Change(path, *shown, grew))
    return found


def _all(dataset: object) -> Iterator[tuple[str, object]]:
    modules: dict[str, types.ModuleType] = {}
    for path, value in walk(dataset):
        yield path, value
        for kind in type(value).__mro__ if not anatomy(value).is_atom else ():
            module = sys.modules.get(kind.__module__)
            if module is not None and is_the_users(module):
                modules[kind.__module__] = module
                yield from _members(f"{kind.__name__}.", vars(kind))
    for name, module in modules.items():
        yield from _members("" if name == "__main__" else f"{name}.", vars(module))


def _members(prefix: str, members: Any) -> Iterator[tuple[str, object]]:
    for name, value in list(members.items()):
        if name.startswith("__") or isinstance(value, types.ModuleType | type) or callable(value):
            continue
        yield from walk(value, f"{prefix}{name}")


def is_the_users(module: types.ModuleType) -> bool:
    """Written by them, and not installed."""
    file = getattr(module, "__file__", None)
    return file is not None and not file.startswith(_LIBRARIES) and module.__name__.partition(".")[0] != "holdfast"


def _seen(value: Any) -> tuple[str, Any] | None:
    known = anatomy(value)
    if value is None:
        return "none", None
    if type(value) in _PLAIN:
        return "plain", value
    if any(name in known.bases for name in _GENERATORS):
        return None
    if any(name in known.bases for name in _ARRAYS):
        return "array", fingerprint(value)
    if known.container is not None:
        return "size", known.container.__len__(value)
    return None
