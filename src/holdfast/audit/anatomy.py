"""What can be known of an object without running a line of its code.

Everything is asked of Python's own types and descriptors: ``type(value)`` instead of ``isinstance``, which a proxy may
answer with code of its own; classes by their identity, as a metaclass may have its own idea of equality.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

Name = tuple[str, str]  # (top package, class), such as ("torch", "Module")

MOST_ATTRIBUTES = 1000
_MOST_CLASSES = 1000

# Not entered, nor is what derives from them.
_CLOSED: set[Name] = {
    ("builtins", "module"),
    ("builtins", "type"),
    ("numpy", "generic"),
    ("numpy", "ndarray"),
    ("torch", "Tensor"),
    ("pathlib", "PurePath"),
    ("enum", "Enum"),
    ("_thread", "_local"),
    ("logging", "Logger"),  # travels by name, and leads to every logger of the program
    ("logging", "LoggerAdapter"),
    ("logging", "Handler"),
    ("holdfast", "Counter"),
}
# Made to be in several processes at once.
_AT_HOME_ANYWHERE = ("multiprocessing.", "torch.multiprocessing.", "holdfast.sharing.")
_ATOMS = (type(None), bool, int, float, complex, str, bytes, bytearray, range, slice, types.CodeType)
_CONTAINERS = (dict, set, frozenset, list, tuple, deque)

_mro_of: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_namespace_of: Callable[[type], Any] = type.__dict__["__dict__"].__get__


class Anatomy:
    """What is the same for all objects of a class."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        mro = _mro_of(kind)
        self.bases: dict[Name, Any] = {_name(base): base for base in reversed(mro)}
        """The class and all that it derives from. To call a method of one of these is to run that one's code."""
        self.is_atom = any(kind is atom for atom in _ATOMS)
        self.is_closed = (
            self.is_atom or not _CLOSED.isdisjoint(self.bases) or f"{_module(kind)}.".startswith(_AT_HOME_ANYWHERE)
        )
        self.container: Any = next((one for one in _CONTAINERS if any(base is one for base in mro)), None)
        """Which of Python's containers it is, if any."""
        self.name = f"{_module(kind)}.{_qualified(kind)}".removeprefix("builtins.").removeprefix("_io.")
        self._getter = next(
            (_namespace_of(base)["__dict__"] for base in mro if "__dict__" in _namespace_of(base)), None
        )
        self._slots = [slot for base in mro for slot in _slots_of(base)]

    def attributes(self, value: object) -> Iterator[tuple[str, Any]]:
        """Slots, and what ``vars`` gives, unless the class has a ``__dict__`` of its own making."""
        for slot in self._slots:
            try:
                yield slot.__name__, slot.__get__(value)
            except AttributeError:
                pass  # not assigned
        if type(self._getter) is types.GetSetDescriptorType:
            own = self._getter.__get__(value)
            if anatomy(own).container is dict:
                yield from islice(dict.items(own), MOST_ATTRIBUTES)


_known: dict[int, Anatomy] = {}


def anatomy(value: object) -> Anatomy:
    kind = type(value)
    found = _known.get(id(kind))
    if found is None:
        if len(_known) >= _MOST_CLASSES:
            _known.clear()  # they are kept alive by this, so that no number is used again
        found = _known[id(kind)] = Anatomy(kind)
    return found


def attributes(value: object) -> dict[str, Any]:
    return dict(anatomy(value).attributes(value))


def _slots_of(kind: type) -> list[types.MemberDescriptorType]:
    names = _namespace_of(kind)
    if "__slots__" not in names:
        return []
    return [member for member in names.values() if type(member) is types.MemberDescriptorType]


def _name(kind: type) -> Name:
    return _module(kind).partition(".")[0], type.__getattribute__(kind, "__name__")


def _qualified(kind: type) -> str:
    return str(type.__getattribute__(kind, "__qualname__"))


def _module(kind: type) -> str:
    name = type.__getattribute__(kind, "__module__")
    return name if type(name) is str else ""
