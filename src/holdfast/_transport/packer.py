"""Takes a value apart into a skeleton and leaves, and puts it together again.

The skeleton is a pickle made by cloudpickle: lambdas, closures, and classes of a script or a notebook travel by
value, and a class that came from the other side is recognised when it returns, so ``isinstance`` holds.
"""

from __future__ import annotations

import io
import pickle
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.reduction import ForkingPickler
from types import ModuleType
from typing import Any

import cloudpickle
import numpy
import torch

from . import leaves as leaf_kinds
from .leaves import Leaf, Region

PROTOCOL = 5
_NOT_A_LEAF = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
    "process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing "
    "(e.g., putting it on the queue)."
)

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


def _typed_storage(untyped: torch.UntypedStorage, dtype: torch.dtype) -> torch.TypedStorage:
    return torch.TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


def _untyped_storage(raw: torch.Tensor) -> torch.UntypedStorage:
    return raw.untyped_storage()


class Taken(io.BytesIO):
    """A value taken apart: the skeleton in the file, tensors and arrays beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[torch.Tensor | numpy.ndarray[Any, Any] | memoryview] = []

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
        if kind is torch.Tensor:
            reduced = self._reduce_tensor(obj)
        elif kind is numpy.ndarray:
            reduced = NotImplemented if obj.dtype.hasobject else self._leave_out(obj)
        elif kind is torch.TypedStorage and obj._untyped_storage.device.type == "cpu":
            reduced = (_typed_storage, (obj._untyped_storage, obj.dtype))
        elif kind is torch.UntypedStorage and obj.device.type == "cpu":
            reduced = (_untyped_storage, (torch.empty(0, dtype=torch.uint8).set_(obj),))
        elif kind in _REGISTERED and not kind.__module__.startswith("torch"):
            return _REGISTERED[kind](obj)
        else:
            return super().reducer_override(obj)
        return super().reducer_override(obj) if reduced is NotImplemented else reduced

    def _reduce_tensor(self, tensor: torch.Tensor) -> Any:
        if tensor.requires_grad and not tensor.is_leaf:
            raise RuntimeError(_NOT_A_LEAF)
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
            return NotImplemented  # torch takes these apart itself, into plain tensors and storages
        if tensor.device.type == "cpu":
            return self._reduce_flat(tensor)
        if tensor.device.type == "meta":
            return NotImplemented
        from torch.multiprocessing.reductions import reduce_tensor

        return reduce_tensor(tensor)

    def _reduce_flat(self, tensor: torch.Tensor) -> Any:
        memory = getattr(tensor.untyped_storage(), "_holdfast", None)  # of `share`; this is all that others pay for it
        return self._leave_out(tensor) if memory is None else memory.reduce_tensor(tensor)

    def _leave_out(self, obj: Any) -> Any:
        self._found.append(obj)
        return leaf, (len(self._found) - 1,)


def take_apart(value: object) -> tuple[bytes, list[Leaf], list[Region]]:
    """Skeleton, leaves and the regions of memory that the leaves speak of."""
    taken = Taken()
    Packer(taken).dump(value)
    leaves, regions = describe(taken.found)
    return taken.getvalue(), leaves, regions


def describe(found: Sequence[Any]) -> tuple[list[Leaf], list[Region]]:
    regions: list[Region] = []
    leaves: list[Leaf | None] = [None] * len(found)
    tensors = [i for i, obj in enumerate(found) if isinstance(obj, torch.Tensor)]
    for i, tensor_leaf in zip(tensors, leaf_kinds.of_tensors([found[i] for i in tensors], regions), strict=True):
        leaves[i] = tensor_leaf
    for i, obj in enumerate(found):
        if isinstance(obj, numpy.ndarray):
            leaves[i] = leaf_kinds.of_array(obj, regions)
        elif isinstance(obj, memoryview):
            leaves[i] = leaf_kinds.of_buffer(obj, regions)
    return leaves, regions  # type: ignore[return-value]  # every place was filled


def put_together(skeleton: bytes | memoryview, objects: Sequence[Any], buffers: Sequence[Any] = ()) -> Any:
    """The value again, from the rebuilt leaves in order; ``buffers`` are those among them that were buffers."""
    outer = getattr(_open, "leaves", None)
    _open.leaves = objects
    try:
        return pickle.loads(skeleton, buffers=buffers)
    finally:
        _open.leaves = outer
