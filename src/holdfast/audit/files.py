"""Which open file or socket is behind an object, through the wrappers of the standard library."""

from __future__ import annotations

import io
from typing import Any

from .anatomy import anatomy, attributes

_DEEPEST = 8  # wrappers around wrappers
_STANDARD_STREAMS = 2  # and below: input, output, errors

# The attribute that a wrapper reads from. Those of _io are descriptors of C, the others are in the instance.
_READS_FROM = {
    ("_io", "TextIOWrapper"): "buffer",
    ("_io", "BufferedReader"): "raw",
    ("_io", "BufferedWriter"): "raw",
    ("_io", "BufferedRandom"): "raw",
    ("tempfile", "_TemporaryFileWrapper"): "file",
    ("codecs", "StreamReaderWriter"): "stream",
    ("socket", "SocketIO"): "_sock",
    ("zipfile", "ZipFile"): "fp",
    ("tarfile", "TarFile"): "fileobj",
    ("gzip", "GzipFile"): "fileobj",
    ("bz2", "BZ2File"): "_fp",
    ("lzma", "LZMAFile"): "_fp",
}
_OPENED_BY = {
    "zipfile": "zipfile.ZipFile",
    "tarfile": "tarfile.open",
    "gzip": "gzip.open",
    "bz2": "bz2.open",
    "lzma": "lzma.open",
}


def is_stream(value: object) -> bool:
    """Whether it is an object to read from or write to, be it open or closed."""
    return not _STREAMS.isdisjoint(anatomy(value).bases)


def open_end(value: object) -> object | None:
    """The file or socket with a descriptor that ``value`` reads from in the end; None when there is none, or closed.

    Files that are only appended to are left out, as each write goes to the end whoever writes; so are standard streams.
    """
    for _ in range(_DEEPEST):
        for name, base in anatomy(value).bases.items():
            if name in _ENDS:
                return value if _ENDS[name](base, value) else None
            if name in _READS_FROM:
                value = _inside(base, value, _READS_FROM[name])
                break
    return None


def is_file(end: object) -> bool:
    return ("_io", "FileIO") in anatomy(end).bases


def recipe(value: object, end: object) -> str:
    """A call that opens the same again in another process."""
    opener = next((_OPENED_BY[top] for top, _ in anatomy(value).bases if top in _OPENED_BY), None)
    if opener is None and not is_file(end):
        return "holdfast.per_worker(socket.create_connection, address)"
    name = attributes(end).get("name")
    arguments = [opener or "open", repr(name) if type(name) in (str, bytes) else "path"]
    if opener is None:
        arguments.append(repr(_mode(value, end)))
    return f"holdfast.per_worker({', '.join(arguments)})"


def _inside(base: Any, value: object, attribute: str) -> object:
    if base.__module__ == "_io":
        return base.__dict__[attribute].__get__(value)
    return attributes(value).get(attribute)


def _mode(value: object, end: Any) -> str:
    mode = str(io.FileIO.__dict__["mode"].__get__(end))
    return mode.replace("b", "") if ("_io", "TextIOWrapper") in anatomy(value).bases else mode


def _is_open_file(base: Any, value: Any) -> bool:
    if base.__dict__["closed"].__get__(value) or base.fileno(value) <= _STANDARD_STREAMS:
        return False
    return "a" not in base.__dict__["mode"].__get__(value)


def _is_open_socket(base: Any, value: Any) -> bool:
    return bool(base.fileno(value) >= 0)


_ENDS = {("_io", "FileIO"): _is_open_file, ("_socket", "socket"): _is_open_socket}
_STREAMS = {*_ENDS, *_READS_FROM}
