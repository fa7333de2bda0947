"""``manifest``: one list of the files of a data set, the same for all ranks, all workers and all runs."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

import numpy

from .errors.base import first_of
from .listing import list_files

NEWLINE = 10


class Manifest(Sequence[str]):
    """Full paths of files, sorted by the bytes of their names, frozen. A slice of one is one, too.

    Two arrays instead of a list of strings: 3 million paths become 3 million objects for nobody, and the workers of a
    loader all map the same memory.
    """

    def __init__(self, root: str, content: bytes) -> None:
        """``content``: relative names, each ended by a newline."""
        self.root = root
        self._content = numpy.frombuffer(content or b"\n", dtype=numpy.uint8)[: len(content)]
        self._ends = numpy.flatnonzero(self._content == NEWLINE)
        self._ends.flags.writeable = False

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the relative names: equal for the same files under different roots."""
        return hashlib.sha256(self._content.data).hexdigest()

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Manifest: ...
    def __getitem__(self, index: int | slice) -> str | Manifest:
        if isinstance(index, slice):
            return Manifest(self.root, _lines(map(self._name, range(len(self))[index])))
        try:
            return self._path(range(len(self))[index])
        except IndexError:
            raise IndexError(f"there are {len(self)} files, no number {index}") from None

    def __iter__(self) -> Iterator[str]:
        return map(self._path, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Manifest):
            return NotImplemented
        return self.root == other.root and numpy.array_equal(self._content, other._content)

    def __hash__(self) -> int:
        return hash((self.root, self.digest))

    def __repr__(self) -> str:
        return f"Manifest({self.root!r}, {len(self)} files, digest {self.digest[:12]})"

    def _path(self, number: int) -> str:
        return os.path.join(self.root, os.fsdecode(self._name(number)))

    def _name(self, number: int) -> bytes:
        start = self._ends[number - 1] + 1 if number else 0
        return self._content[start : self._ends[number]].tobytes()


def manifest(
    path: str | os.PathLike[str],
    pattern: str = "**/*",
    *,
    save: str | os.PathLike[str] | None = None,
    check: bool = True,
) -> Manifest:
    """All files under ``path`` that match ``pattern``, listed once: no two ranks or workers see different ones.

    Where ``torch.distributed`` is initialised, rank 0 lists and all ranks get its list, each under its own ``path``; so
    all of them must call this. Workers of a loader cannot ask rank 0: make the list in the trainer and let it travel
    with the data set.

    ``**`` is any number of folders. Names that begin with a dot are left out unless the pattern has the dot too, which
    leaves out what rsync and most download tools have not finished; others write ``name.part`` or in place: a pattern
    such as ``"**/*.jpg"`` and a listing after the copy help there. No file at all is an error.

    Args:
        save: a file to keep the list in. The first run writes it, later ones read it instead of listing, and so do
            processes on the same storage that are not ranks of one job.
        check: hold a list that was read against what is there: a file that is missing is an error; how many are new is
            logged, and they are left out.
    """
    root = os.path.abspath(path)
    found = _agreed(lambda: _found(root, pattern, os.fspath(save) if save is not None else None, check))
    return found if found.root == root else Manifest(root, found._content.tobytes())


def _found(root: str, pattern: str, save: str | None, check: bool) -> Manifest:
    if save is not None and os.path.exists(save):
        read = _read(save, root, pattern)
        if check:
            _check(read, save, pattern)
        return read
    names = list_files(root, pattern)
    if not names:
        raise FileNotFoundError(f"there is no file under {root} that matches {pattern!r}")
    listed = Manifest(root, _lines(names))
    if save is None:
        return listed
    _write(listed, save, pattern)
    return _read(save, root, pattern)  # of whoever was first


def _agreed(find: Callable[[], Manifest]) -> Manifest:
    """What rank 0 found, or failed with."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not (distributed.is_available() and distributed.is_initialized()):
        return find()
    from ._worker.info import get_worker_info

    if get_worker_info() is not None:
        return find()  # a forked worker has the connections of its rank, but must not use them
    answer: list[Any] = [None]
    if distributed.get_rank() == 0:
        try:
            answer = [find()]
        except Exception as error:
            answer = [error]
    distributed.broadcast_object_list(answer)
    if isinstance(answer[0], Exception):
        raise answer[0]
    agreed: Manifest = answer[0]
    return agreed


# The file: a line of JSON, then the names, one on each line.


def _write(listed: Manifest, save: str, pattern: str) -> None:
    """Whole or not at all; whoever comes second keeps what is there."""
    header = {"holdfast": "manifest", "pattern": pattern, "files": len(listed), "sha256": listed.digest}
    draft = f"{save}.{os.getpid()}-{os.urandom(4).hex()}"
    try:
        with open(draft, "xb") as file:
            file.write(json.dumps(header).encode() + b"\n" + listed._content.tobytes())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, save)
        except FileExistsError:
            return
        except OSError:  # a file system without links
            os.replace(draft, save)
    finally:
        if os.path.exists(draft):
            os.unlink(draft)


def _read(save: str, root: str, pattern: str) -> Manifest:
    with open(save, "rb") as file:
        first, content = file.readline(), file.read()
    try:
        header = json.loads(first)
        said = (header["files"], header["sha256"])
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{save} is not a manifest") from None
    read = Manifest(root, content)
    if (len(read), read.digest) != said:
        raise ValueError(f"{save} is damaged: it should have {said[0]} files and has {len(read)}, or others")
    if header["pattern"] != pattern:
        raise ValueError(f"{save} is a list of {header['pattern']!r}, not of {pattern!r}; remove it to list anew")
    return read


def _check(read: Manifest, save: str, pattern: str) -> None:
    listed, there = set(read._content.tobytes().split(b"\n")[:-1]), set(list_files(read.root, pattern))
    if missing := sorted(listed - there):
        names = first_of(map(os.fsdecode, missing))
        raise FileNotFoundError(f"{len(missing)} of the {len(read)} files in {save} are not in {read.root}: {names}")
    if new := len(there - listed):
        logger = logging.getLogger("holdfast")
        logger.warning("%s has %d files that are not in %s and are left out", read.root, new, save)


def _lines(names: Iterable[bytes]) -> bytes:
    names = list(names)
    content = b"".join([name + b"\n" for name in names])
    if content.count(b"\n") != len(names):
        raise ValueError(f"a file name has a newline in it: {next(name for name in names if NEWLINE in name)!r}")
    return content
