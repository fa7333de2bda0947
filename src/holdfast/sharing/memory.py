"""Shared memory: filled once (`Draft`), mapped by every process that is handed it (`Memory`)."""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy
import torch

from holdfast._system.segments import MemfdSegment
from holdfast.errors import SharedGone

from . import flight
from .files import TOKEN, address_of, fcntl, hold_anew, let_go, new_file, open_at, path_of
from .locks import HOLDER, Lock

HEADER = 64
ALIGNMENT = 64
assert HOLDER + 8 <= HEADER


class Draft:
    """Memory that is being filled, by writes: half the page faults of filling a mapping, and ``MemoryError`` when there
    is no room. Whoever made it calls ``finish`` or ``abandon``."""

    def __init__(self) -> None:
        self.token = os.urandom(TOKEN)
        self.fd, self.path = new_file(self.token.ljust(HEADER, b"\0"))
        self._segment, self._end = MemfdSegment(self.fd), HEADER

    def align(self) -> int:
        """Where the next piece will lie."""
        self._end = -(-self._end // ALIGNMENT) * ALIGNMENT
        return self._end

    def append(self, data: Any) -> int:
        """Write after what is there already, and say where."""
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        start = self._end
        try:
            self._segment.write(view, start)
        except OSError as error:
            raise MemoryError(f"the system has no {view.nbytes} bytes left ({error.strerror})") from error
        self._end += view.nbytes
        return start

    def finish(self, readonly: bool) -> Memory:
        os.ftruncate(self.fd, self.align())
        if not self.path:
            _seal(self.fd, readonly)
        return _keep(Memory(self.fd, self.path, self.token, self._end, readonly, ""))

    def abandon(self) -> None:
        let_go(self.fd, self.path)


class Memory:
    """Bytes that several processes map. Owns a descriptor. Whatever is made of it refers to it, and it goes with the
    last of these: nothing has to be closed, so nothing can be used after it was closed."""

    def __init__(self, fd: int, path: str, token: bytes, size: int, readonly: bool, source: str) -> None:
        self.fd, self.path, self.token, self.size, self.readonly = fd, path, token, size, readonly
        self._source = source  # where we had it from, when that was another process
        self._storage: weakref.ref[torch.UntypedStorage] | None = None
        self._mapping: weakref.ref[mmap.mmap] | None = None
        self._lock: Lock | None = None
        weakref.finalize(self, let_go, fd, path).atexit = bool(path)

    @property
    def lock(self) -> Lock:
        with _guard:
            if self._lock is None:
                self._lock = Lock(self.fd, self.path, self.readonly)
            return self._lock

    def array(self) -> numpy.ndarray[Any, Any]:
        """All of it as bytes. Arrays that are made of this keep the mapping."""
        if self.readonly:
            return numpy.frombuffer(self._mapped(), numpy.uint8)
        whole: numpy.ndarray[Any, Any] = torch.empty(0, dtype=torch.uint8).set_(self.storage()).numpy()
        return whole

    def storage(self) -> torch.UntypedStorage:
        """All of it for tensors. torch keeps a storage's Python object for as long as any tensor uses the storage, so
        every view, whoever made it, leads back here."""
        storage = self._storage() if self._storage else None
        if storage is None:
            storage = self._readonly_storage() if self.readonly else self._shared_storage()
            storage._holdfast = self  # type: ignore[attr-defined]
            self._storage = weakref.ref(storage)
        return storage

    def _shared_storage(self) -> torch.UntypedStorage:
        # As torch makes its own: torch.multiprocessing knows it as shared, and passes views of it on without a copy.
        storage: torch.UntypedStorage = torch.UntypedStorage._new_shared_fd_cpu(self.fd, self.size)  # type: ignore[attr-defined]
        return storage

    def _readonly_storage(self) -> torch.UntypedStorage:
        # torch refuses to hand out a pointer for writing. C code that writes all the same, through a pointer for
        # reading, changes a page of its own: copy on write. Mapped for reading only, it would be a segmentation fault.
        whole = torch.frombuffer(mmap.mmap(self.fd, self.size, access=mmap.ACCESS_COPY), dtype=torch.uint8)
        torch._C._set_throw_on_mutable_data_ptr(whole)
        return whole.untyped_storage()

    def _mapped(self) -> mmap.mmap:
        mapping = self._mapping() if self._mapping else None
        if mapping is None:
            mapping = mmap.mmap(self.fd, self.size, access=mmap.ACCESS_READ)
            self._mapping = weakref.ref(mapping)
        return mapping

    def reduce_tensor(self, tensor: torch.Tensor) -> Any:
        """How a tensor that lies here travels, of whatever class. For the packer, which does not know this room."""
        from .tensors import reduced

        return reduced(tensor, self)

    def __reduce__(self) -> Any:
        addresses = dict.fromkeys([address_of(self.fd, self.path), self._source or address_of(self.fd, self.path)])
        return received, (self.token, self.size, self.readonly, tuple(addresses), flight.depart(self))


def received(token: bytes, size: int, readonly: bool, addresses: Sequence[str], log: flight.Address) -> Memory:
    """The memory behind a handle, in the process that was handed it. Named in every pickle."""
    with _guard:
        memory = _known.get(token)
        if memory is None:
            fd, address = _find(addresses, token)
            memory = _known[token] = Memory(fd, path_of(address), token, size, readonly, address)
    flight.arrive(log, token)
    return memory


def _find(addresses: Sequence[str], token: bytes) -> tuple[int, str]:
    """At the sender's, or at the one's whom the sender had it from."""
    refused = None
    for address in addresses:
        try:
            return open_at(address, token), address
        except OSError as error:
            refused = refused or error
    raise SharedGone(addresses[0], refused.strerror or str(refused) if refused else "") from refused


def memory_of(tensor: torch.Tensor) -> Memory | None:
    """What a tensor's bytes lie in, when they are shared."""
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        return None
    return getattr(tensor.untyped_storage(), "_holdfast", None)


def _keep(memory: Memory) -> Memory:
    with _guard:
        _known[memory.token] = memory
    return memory


def _seal(fd: int, readonly: bool) -> None:
    """Nobody can shrink it, so no access can fail; of a read-only one nobody can change a byte, whatever they try."""
    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals | (fcntl.F_SEAL_WRITE if readonly else 0))


_known: weakref.WeakValueDictionary[bytes, Memory] = weakref.WeakValueDictionary()  # one mapping for a process
_guard = threading.RLock()  # a collection may run a finalizer in the middle


def _after_fork() -> None:
    global _guard
    _guard = threading.RLock()
    for memory in list(_known.values()):
        if memory.path:
            hold_anew(memory.fd, memory.path)
    flight.forget()  # after that: it may let go of some, and must not with the parent's hold on them


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
