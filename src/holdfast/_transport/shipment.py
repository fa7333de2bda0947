"""The data set and its functions, serialised once for a whole crew.

Flat memory (arrays, tensors) lies out of band in one sealed segment that every worker maps copy-on-write: N workers
cost one copy together, and each may still write to its own view. Memory that was shared before (``share_memory_``,
``multiprocessing`` arrays, locks, queues) stays shared: it travels as a descriptor, as it would to a spawned child.
"""

from __future__ import annotations

import mmap
import os
import pickle
import pickletools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import context as mp_context
from multiprocessing.reduction import ForkingPickler
from typing import Any, Generic, NamedTuple, TypeVar

from holdfast._system.segments import MemfdSegment, NamedSegment

from .arena import aligned
from .leaves import BufferLeaf, Leaf, Region
from .packer import Packer, Taken, describe, put_together

SCANNED = 1 << 20  # bytes of a skeleton that are searched for names of modules


class Manifest(NamedTuple):
    """Where in the segment the table of contents lies."""

    start: int
    size: int
    total: int


S = TypeVar("S", MemfdSegment, NamedSegment)


class Shipment(Generic[S]):
    """What a crew is handed. The trainer owns it for as long as a worker may be started."""

    def __init__(self, segment: S, manifest: Manifest, fds: list[int], modules: list[str]) -> None:
        self.segment: S = segment
        self.manifest, self.fds, self.modules = manifest, fds, modules

    def close(self) -> None:
        self.segment.close()
        while self.fds:
            os.close(self.fds.pop())


def equal(one: Shipment[MemfdSegment], other: Shipment[MemfdSegment]) -> bool:
    """Whether the same comes out of both; what is shared through a descriptor is not looked into."""
    if one.fds or other.fds or one.manifest != other.manifest:
        return False
    with one.segment.map_private() as this, other.segment.map_private() as that:
        return memoryview(this) == memoryview(that)


def ship(value: object, segment: S) -> Shipment[S]:
    """Serialise ``value`` into ``segment``."""
    skeleton, found, fds = _take_apart(value)
    leaves, regions = describe(found)
    manifest = _stow(segment, skeleton, leaves, regions)
    return Shipment(segment, manifest, fds, modules_named_in(skeleton))


def try_to_ship(value: object) -> None:
    """Fails as ``ship`` would, and keeps nothing."""
    _, _, fds = _take_apart(value)
    for fd in fds:
        os.close(fd)


def try_to_ship_by_name(value: object) -> None:
    """The same for workers that no descriptor can be handed to."""
    _, _, fds = _take_apart(value)
    for fd in fds:
        os.close(fd)
    if fds:
        raise TypeError("it is shared through a file descriptor, and a standby worker cannot be handed one")


def _take_apart(value: object) -> tuple[bytes, list[Any], list[int]]:
    passengers, taken = _Passengers(), Taken()
    try:
        with as_if_spawning(passengers):
            _Shipper(taken).dump(value)
    except BaseException:
        passengers.close()
        raise
    return taken.getvalue(), taken.found, passengers.fds


def unload(mapping: mmap.mmap, manifest: Manifest, fds: list[int]) -> Any:
    """The value again, in the worker; its flat memory is the mapping itself."""
    table = mapping[manifest.start : manifest.start + manifest.size]
    skeleton, leaves, starts = pickle.loads(table)
    buffers = [mapping] * len(starts)
    objects = [leaf.rebuild(buffers, starts) for leaf in leaves]
    out_of_band = [made for made, leaf in zip(objects, leaves, strict=True) if type(leaf) is BufferLeaf]
    _Inherited.fds = fds
    return put_together(skeleton, objects, out_of_band)


def _stow(segment: MemfdSegment | NamedSegment, skeleton: bytes, leaves: list[Leaf], regions: list[Region]) -> Manifest:
    starts, end = [], 0
    for region in regions:
        starts.append(end)
        end += aligned(region.size)
    table = pickle.dumps((skeleton, leaves, starts), protocol=5)
    segment.extend(aligned(end + len(table), mmap.ALLOCATIONGRANULARITY))
    manifest = Manifest(end, len(table), aligned(end + len(table), mmap.ALLOCATIONGRANULARITY))
    if isinstance(segment, MemfdSegment):
        for region, start in zip(regions, starts, strict=True):
            segment.write(region.view(), start)
        segment.write(memoryview(table), end)
        segment.seal()
        return manifest
    with segment.map(0, manifest.total) as mapping:
        for region, start in zip(regions, starts, strict=True):
            mapping[start : start + region.size] = region.view()
        mapping[end : end + len(table)] = table
    return manifest


def modules_named_in(skeleton: bytes) -> list[str]:
    """Modules of the trainer that the pickle names, so that they can be imported once for all workers."""
    names: dict[str, None] = {}
    try:
        for opcode, argument, _ in pickletools.genops(skeleton[:SCANNED]):
            if "UNICODE" in opcode.name and argument in sys.modules:
                names[argument] = None
    except ValueError:
        pass  # the cut fell into an opcode
    return [name for name in names if name not in ("__main__", "__mp_main__", "builtins")]


class _Shipper(Packer):
    """As for batches, but memory that is shared stays shared."""

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        reducer = ForkingPickler._extra_reducers.get(kind)  # type: ignore[attr-defined]
        if reducer is not None and (not kind.__module__.startswith("torch") or _is_shared(obj)):
            return reducer(obj)
        return super().reducer_override(obj)


def _is_shared(obj: Any) -> bool:
    import torch  # whose type this is

    if isinstance(obj, torch.TypedStorage):
        obj = obj._untyped_storage
    return bool(obj.device.type == "cpu" and obj.is_shared())


class _Inherited:
    """A descriptor that came with the shipment, found by its place in the row. Named in the pickle."""

    fds: list[int] = []  # noqa: RUF012  # set once, in the worker, before anything is unpickled

    def __init__(self, place: int) -> None:
        self.place = place

    def detach(self) -> int:
        return os.dup(self.fds[self.place])


class _Passengers:
    """Stands where ``multiprocessing`` expects the process that is being spawned: collects descriptors to hand over."""

    DupFd = _Inherited

    def __init__(self) -> None:
        self.fds: list[int] = []

    def duplicate_for_child(self, fd: int) -> int:
        self.fds.append(os.dup(fd))
        return len(self.fds) - 1

    def close(self) -> None:
        while self.fds:
            os.close(self.fds.pop())


@contextmanager
def as_if_spawning(popen: _Passengers | None = None) -> Iterator[None]:
    """What can be handed to a child only, such as a lock of ``multiprocessing``, can be pickled in here."""
    outer = mp_context.get_spawning_popen()
    mp_context.set_spawning_popen(popen or _Passengers())  # type: ignore[arg-type]
    try:
        yield
    finally:
        mp_context.set_spawning_popen(outer)
