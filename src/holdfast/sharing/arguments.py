"""Arguments of a task on their way to a worker: what is shared stays shared, also what torch itself has shared.

A tensor after ``share_memory_()`` lies in memory behind a descriptor of this process. ``torch.multiprocessing`` hands
descriptors over through a thread and a socket; a worker of ours opens it where it is, as it does that of ``share``, and
looks whether it is still the same file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import Any

import torch
from torch import UntypedStorage
from torch.multiprocessing import get_sharing_strategy
from torch.multiprocessing.reductions import StorageWeakRef, shared_cache, storage_from_cache

from holdfast._transport.packer import Packer
from holdfast.errors import SharedGone

from . import flight
from .files import ANONYMOUS, address_of

_IDENTITY = struct.Struct("QQ")  # number of the file, and of its file system: as long as the token of a memory


class Arguments(Packer):
    """As for batches, but a tensor that torch has shared is not copied. Whoever may send the pickle more than once
    keeps the value until then."""

    def reduce_flat(self, tensor: torch.Tensor) -> Any:
        storage = tensor.untyped_storage()
        lent = None if hasattr(storage, "_holdfast") else _lend(storage)
        if lent is None or tensor.is_conj() or tensor.is_neg():
            return super().reduce_flat(tensor)
        place = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
        return _tensor_in, (lent, tensor.dtype, *place, tensor.requires_grad)


class _Lent:
    """A storage of torch's that others map too. In a pickle it is the way to it; loaded, it is the storage."""

    def __init__(self, storage: UntypedStorage, token: bytes, *way: Any) -> None:
        self.storage, self.token, self._way = storage, token, way

    def __reduce__(self) -> Any:
        return _received, (*self._way, self.storage.nbytes(), self.token, flight.depart(self))


def _lend(storage: UntypedStorage) -> _Lent | None:
    """None when it is not shared, or lies in a file of the user's."""
    if not storage.is_shared() or not storage.nbytes() or storage.filename:
        return None
    if get_sharing_strategy() == "file_system":
        manager, name, _ = storage._share_filename_cpu_()
        shared_cache[name] = StorageWeakRef(storage)
        return _Lent(storage, name[-16:].rjust(16), name, manager)
    if not ANONYMOUS:
        return None
    fd, _ = storage._share_fd_cpu_()
    shared_cache[_identity(fd)] = StorageWeakRef(storage)
    return _Lent(storage, _IDENTITY.pack(*_identity(fd)), address_of(fd, ""), b"")


def _received(address: Any, manager: bytes, size: int, token: bytes, log: flight.Address) -> UntypedStorage:
    """The storage behind a handle, in the process that was handed it: one for all handles. Named in pickles."""
    known = address if manager else _IDENTITY.unpack(token)
    storage: UntypedStorage | None = storage_from_cache(UntypedStorage, known)
    if storage is None:
        storage = _named(manager, address, size) if manager else _opened(address, known, size)
        shared_cache[known] = StorageWeakRef(storage)
    flight.arrive(log, token)
    return storage


def _named(manager: bytes, name: bytes, size: int) -> UntypedStorage:
    try:
        return UntypedStorage._new_shared_filename_cpu(manager, name, size)
    except RuntimeError as error:
        raise SharedGone(name.decode(), str(error)) from error


def _opened(address: str, identity: Any, size: int) -> UntypedStorage:
    try:
        fd = os.open(address, os.O_RDWR | os.O_NONBLOCK)
    except OSError as error:
        raise SharedGone(address, error.strerror or "") from error
    try:
        if _identity(fd) != identity:
            raise SharedGone(address, "something else is there by now")
        storage: UntypedStorage = UntypedStorage._new_shared_fd_cpu(fd, size)  # type: ignore[attr-defined]
        return storage
    finally:
        os.close(fd)


def _identity(fd: int) -> tuple[int, int]:
    """What torch knows the file by too."""
    status = os.fstat(fd)
    return status.st_ino, status.st_dev


def _tensor_in(
    storage: UntypedStorage, dtype: torch.dtype, start: int, shape: Sequence[int], stride: Any, requires_grad: bool
) -> torch.Tensor:
    """A tensor of bytes that lie there already. Named in pickles."""
    return torch.empty(0, dtype=dtype).set_(storage, start, shape, stride).requires_grad_(requires_grad)
