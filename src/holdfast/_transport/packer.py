"""Takes a value apart into a skeleton and leaves, and puts it together again.

The skeleton is a pickle made by cloudpickle: lambdas, closures, and classes of a script or a notebook travel by
value, and a class that came from the other side is recognised when it returns, so ``isinstance`` holds.
"""

from __future__ import annotations

import importlib
import io
import pickle
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.reduction import ForkingPickler
from types import ModuleType
from typing import Any

import cloudpickle

from holdfast._system import late

from .leaves import Leaf, Region

PROTOCOL = 5
# What libraries have registered for the way between processes (memory-mapped tensors of tensordict, sockets). torch's
# own entries are left out: they would move tensors into other shared memory.
_REGISTERED: dict[type, Callable[[Any], Any]] = ForkingPickler._extra_reducers  # type: ignore[attr-defined]

_open = threading.local()


def _travels_by_value(name: str) -> None:
    """What a module of this name defines. It need not be there yet."""
    known = sys.modules.get(name)
    module = sys.modules[name] = known or ModuleType(name)
    cloudpickle.register_pickle_by_value(module)
    if known is None:
        del sys.modules[name]


_travels_by_value("__mp_main__")  # so the script is called in a process that multiprocessing has spawned


def leaf(number: int) -> Any:
    """The object behind leaf ``number`` of the value that this thread is putting together. Named in every skeleton."""
    return _open.leaves[number]


class Taken(io.BytesIO):
    """A value taken apart: the skeleton in the file, tensors and arrays beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Any] = []

    def leave_out_buffer(self, buffer: pickle.PickleBuffer) -> None:
        self.found.append(buffer.raw())


class Packer(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    """Pickles one value, leaving its flat memory out. ``found`` is what was left out, in the order of the leaves."""

    def __init__(self, taken: Taken) -> None:
        # Not a method of our own: the pickler would be part of a cycle, and keep all that it has seen for a while.
        super().__init__(taken, protocol=PROTOCOL, buffer_callback=taken.leave_out_buffer)
        self._found = taken.found
        self.plain = True  # nothing but built-in types so far

    def reducer_override(self, obj: Any) -> Any:
        self.plain = False
        kind = type(obj)
        ours = _OURS.get(kind)
        if ours is not None:
            reduced = ours(self, obj)
            return super().reducer_override(obj) if reduced is NotImplemented else reduced
        if kind in _REGISTERED and not kind.__module__.startswith("torch"):
            return _REGISTERED[kind](obj)
        return super().reducer_override(obj)

    def reduce_flat(self, tensor: Any) -> Any:
        """A tensor whose memory is here."""
        memory = getattr(tensor.untyped_storage(), "_holdfast", None)  # of `share`; this is all that others pay for it
        return self.leave_out(tensor) if memory is None else memory.reduce_tensor(tensor)

    def leave_out(self, obj: Any) -> Any:
        self._found.append(obj)
        return leaf, (len(self._found) - 1,)


_Reduce = Callable[[Packer, Any], Any]
_LayOut = Callable[[list[Any], list[Region]], Sequence[Leaf]]
_OURS: dict[type, _Reduce] = {}
_LEAVES: dict[type, _LayOut] = {}


def takes(kind: type, reduce: _Reduce) -> None:
    """How objects of just this type are taken apart. ``NotImplemented`` leaves one to pickle."""
    _OURS[kind] = reduce


def lays_out(kind: type, leaves: _LayOut) -> None:
    """What becomes of objects of this type that were left out: regions are added for all of them."""
    _LEAVES[kind] = leaves


def take_apart(value: object) -> tuple[bytes, list[Leaf], list[Region]]:
    """Skeleton, leaves and the regions of memory that the leaves speak of."""
    taken = Taken()
    Packer(taken).dump(value)
    leaves, regions = describe(taken.found)
    return taken.getvalue(), leaves, regions


def describe(found: Sequence[Any]) -> tuple[list[Leaf], list[Region]]:
    regions: list[Region] = []
    leaves: list[Any] = [None] * len(found)
    for kind, lay_out in _LEAVES.items():
        places = [i for i, obj in enumerate(found) if isinstance(obj, kind)]
        for i, one in zip(places, lay_out([found[i] for i in places], regions) if places else (), strict=True):
            leaves[i] = one
    return leaves, regions


def _of_buffers(buffers: list[memoryview], regions: list[Region]) -> list[Leaf]:
    from .arrays import of_buffer

    return [of_buffer(buffer, regions) for buffer in buffers]


lays_out(memoryview, _of_buffers)


def put_together(skeleton: bytes | memoryview, objects: Sequence[Any], buffers: Sequence[Any] = ()) -> Any:
    """The value again, from the rebuilt leaves in order; ``buffers`` are those among them that were buffers."""
    outer = getattr(_open, "leaves", None)
    _open.leaves = objects
    try:
        return pickle.loads(skeleton, buffers=buffers)
    finally:
        _open.leaves = outer


late.when_here("numpy", lambda: importlib.import_module("holdfast._transport.arrays"))
late.when_here("torch", lambda: importlib.import_module("holdfast._transport.tensors"))
