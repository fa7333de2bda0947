"""Shared memory that grows: anonymous where the system has it, named files or sections elsewhere.

A segment is a row of extents. It grows by one extent at a time, is never moved and never shrinks, so an
address that was handed out stays good for as long as the mapping is held. Memory is reserved when the
extent is made: writing to it later cannot fail.
"""

from __future__ import annotations

import glob
import mmap
import os
import sys
from typing import Protocol

HAS_MEMFD = hasattr(os, "memfd_create")


class Segment(Protocol):
    """Growable shared memory. Each holder owns its own handle; the memory lives as long as anyone maps it."""

    def extend(self, size: int) -> int:
        """Reserve ``size`` more bytes and return where they begin; ``MemoryError`` when the system has none left."""
        ...

    def map(self, base: int, size: int, *, private: bool = False) -> mmap.mmap:
        """Map one extent, writable: shared, or copy-on-write, so that writes stay in this process."""
        ...

    def close(self) -> None:
        """Give up the handle; mappings stay."""
        ...


class MemfdSegment:
    """Anonymous memory behind a descriptor: no name, no ``/dev/shm``, nothing left behind by ``kill -9``."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @classmethod
    def create(cls, name: str) -> MemfdSegment:
        if HAS_MEMFD:
            return cls(os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
        import tempfile

        fd, path = tempfile.mkstemp(prefix=name)  # macOS: a file without a name does the same
        os.unlink(path)
        return cls(fd)

    def extend(self, size: int) -> int:
        base = os.fstat(self.fd).st_size
        try:
            _reserve(self.fd, base, size)
        except MemoryError:
            os.ftruncate(self.fd, base)
            raise
        return base

    def map(self, base: int, size: int, *, private: bool = False) -> mmap.mmap:
        access = mmap.ACCESS_COPY if private else mmap.ACCESS_WRITE
        return mmap.mmap(self.fd, size, offset=base, access=access)

    def map_private(self) -> mmap.mmap:
        """Map everything copy-on-write: writes stay in this process."""
        return mmap.mmap(self.fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)

    def write(self, data: memoryview, offset: int) -> None:
        """Write without mapping: half the page faults, and no second mapping of a large data set."""
        while len(data):
            written = os.pwrite(self.fd, data, offset)
            data, offset = data[written:], offset + written

    def seal(self) -> None:
        """From here on the contents cannot change, whoever holds the descriptor. Linux only."""
        if not HAS_MEMFD:
            return
        import fcntl

        seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class NamedSegment:
    """Memory that is found by name, for systems where no descriptor can be handed over.

    Elsewhere than on Windows an extent is a file in the temporary directory. Whoever maps an extent second
    (``unlink=True``) removes the name, and the crew removes what is left of its names when it closes.
    """

    def __init__(self, prefix: str, *, unlink: bool) -> None:
        self.prefix, self._unlink, self._size = prefix, unlink, 0
        self._held: list[mmap.mmap] = []  # on Windows memory lives only as long as somebody maps it

    @staticmethod
    def new_prefix(label: str) -> str:
        return f"{names_of(os.getpid())}{os.urandom(6).hex()}-{label}"

    def extend(self, size: int) -> int:
        base, self._size = self._size, self._size + size
        if sys.platform != "win32":
            fd = os.open(self._name(base), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                _reserve(fd, 0, size)
            finally:
                os.close(fd)
        else:
            self._held.append(self.map(base, size))
        return base

    def map(self, base: int, size: int, *, private: bool = False) -> mmap.mmap:
        access = mmap.ACCESS_COPY if private else mmap.ACCESS_WRITE
        if sys.platform == "win32":
            return mmap.mmap(-1, size, tagname=os.path.basename(self._name(base)), access=access)
        fd = os.open(self._name(base), os.O_RDWR)
        try:
            return mmap.mmap(fd, size, access=access)
        finally:
            os.close(fd)
            if self._unlink:
                os.unlink(self._name(base))

    def map_private(self, size: int) -> mmap.mmap:
        """Map the first extent copy-on-write: writes stay in this process."""
        if sys.platform == "win32":
            return mmap.mmap(-1, size, tagname=os.path.basename(self._name(0)), access=mmap.ACCESS_COPY)
        fd = self.open()
        try:
            return mmap.mmap(fd, size, access=mmap.ACCESS_COPY)
        finally:
            os.close(fd)

    def open(self) -> int:
        """A descriptor of the first extent, where extents are files."""
        return os.open(self._name(0), os.O_RDWR)

    def close(self) -> None:
        self._held.clear()

    def _name(self, base: int) -> str:
        return f"{self.prefix}-{base}"


def names_of(pid: int) -> str:
    """How all names begin that this process makes."""
    import tempfile

    return os.path.join(tempfile.gettempdir(), f"holdfast-{pid}-")


def remove_named(prefix: str) -> None:
    """Names that begin so and that nobody has removed yet."""
    for path in glob.glob(glob.escape(prefix) + "*"):
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


def _reserve(fd: int, base: int, size: int) -> None:
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, base, size)
        else:
            os.ftruncate(fd, base + size)  # macOS has no call that reserves
    except OSError as error:
        raise MemoryError(f"the system has no {size} bytes left ({error.strerror})") from error
