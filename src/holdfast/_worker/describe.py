"""What a user would call a sample: its path, or whatever else the data set knows it by.

Asked only after a failure, and by code that has an error to tell: so nothing here raises, nothing here is long, and of
the user's code only ``describe`` and ``__len__`` are run. Attributes are read as they are stored; a property may do
anything, even fail in the way that is just being reported.
"""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from inspect import getattr_static
from itertools import islice
from operator import index as whole
from traceback import walk_stack
from types import MemberDescriptorType, TracebackType
from typing import Any

import numpy

_LONGEST = 200  # characters of a description
_DEEPEST = 8  # wrappers around a data set, and causes of an error
_MEMBERS = 32  # of a record, that are looked at for a path
_CANDIDATES = 16  # strings in a traceback that are looked up in the file system
_CALLS = 64  # of a traceback, that are searched; a recursion has a thousand

# Where data sets keep what they load, most telling first.
_USUAL = (
    *("samples", "imgs", "paths", "files", "filenames", "file_paths", "image_paths", "img_paths", "image_files"),
    *("images", "urls", "keys", "items", "records", "_samples", "_files", "_image_files"),
)
_EXTENSION = re.compile(r"\S\.[A-Za-z]\w{0,4}$")
NOT_THE_USERS = sys.stdlib_module_names | {"torch", "holdfast"}


def describe(dataset: Any, index: Any, error: BaseException | None = None) -> str:
    """A line of at most 200 characters that says which sample it is; empty when nothing is known."""
    sources: list[Callable[[], str]] = [
        lambda: _in_its_own_words(dataset, index),
        lambda: _listed(dataset, index, sure=True),
        lambda: _named_by(error),
        lambda: _listed(dataset, index, sure=False),
        lambda: _in_use(error),
    ]
    for source in sources:
        try:
            if found := source():
                return one_line(found)
        except Exception:  # a strange data set must not hide the error that is being told
            continue
    return ""


def one_line(text: str) -> str:
    """At most 200 printable characters; of a longer text the end, where paths differ, and a little of the beginning."""
    if len(text) > _LONGEST:
        text = f"{text[:60]}...{text[63 - _LONGEST :]}"
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()


# --- what the data set says ---


def _in_its_own_words(dataset: Any, index: Any) -> str:
    for level, place in _levels(dataset, index):
        if callable(getattr_static(level, "describe", None)):
            words = level.describe(place)
            if words is not None:
                return str(words)
    return ""


def _listed(dataset: Any, index: Any, *, sure: bool) -> str:
    """The entry for ``index`` in a list of the data set. Sure is one as long as the data set itself: a list of three
    columns has an entry 1 too. Of the others, only a path under a usual name is believed.
    """
    other = ""
    for level, place in _levels(dataset, index):
        length = _length(level)
        for usual, entries in _lists(level):
            if _length(entries) != length if sure else not usual:
                continue
            text = _text_of(_entry(entries, place))
            if looks_like_path(text):
                return text
            if sure and usual:
                other = other or text
    return other


def _levels(dataset: Any, index: Any) -> Iterator[tuple[Any, Any]]:
    """The data set, then those that it wraps, each with what the index is called there."""
    for _ in range(_DEEPEST):
        index = _plain(index)
        yield dataset, index
        wrapped = _wrapped(dataset, index)
        if wrapped is None:
            return
        dataset, index = wrapped


def _wrapped(dataset: Any, index: Any) -> tuple[Any, Any] | None:
    ends, parts = _stored(dataset, "cumulative_sizes"), _stored(dataset, "datasets")
    if isinstance(ends, list) and isinstance(parts, list):  # a ConcatDataset
        index += ends[-1] if index < 0 else 0
        number = bisect_right(ends, index)
        return parts[number], index - (ends[number - 1] if number else 0)
    inner, indices = _stored(dataset, "dataset"), _stored(dataset, "indices")
    if inner is None:
        return None
    if indices is not None and _length(indices) == _length(dataset):  # a Subset
        return inner, indices[index]
    return (inner, index) if _length(inner) == _length(dataset) is not None else None


def _lists(dataset: Any) -> Iterator[tuple[bool, Any]]:
    """Attributes that could be a list of what there is to load: those of a usual name (True) first."""
    others = [name for name in getattr(dataset, "__dict__", ()) if name not in _USUAL]
    for name in [*_USUAL, *others]:
        entries = _stored(dataset, name)
        if type(entries) in (list, tuple, dict) or _is_packed(entries) or _is_of_pandas(entries):
            yield name in _USUAL, entries


def _stored(owner: Any, name: str) -> Any:
    """An attribute as it is stored: no property is run, and no ``__getattr__``."""
    value = getattr_static(owner, name, None)
    if isinstance(value, MemberDescriptorType):  # a slot
        return value.__get__(owner)
    return value


def _is_packed(value: Any) -> bool:
    """An array, or a list or dict after ``share``."""
    from holdfast.sharing import PackedDict, PackedList  # here, as few workers have them

    return isinstance(value, numpy.ndarray | PackedList | PackedDict)


def _is_of_pandas(value: Any) -> bool:
    """A Series or a DataFrame, told without importing pandas."""
    return getattr_static(value, "iloc", None) is not None


def _entry(entries: Any, index: Any) -> Any:
    try:
        return entries.iloc[index] if _is_of_pandas(entries) else entries[index]
    except (LookupError, TypeError):
        return None


def _text_of(entry: Any) -> str:
    """A string or path as text; of a record, its first member that looks like a path."""
    if isinstance(entry, str | os.PathLike):
        # Not fspath: there are paths in the cloud that it would download.
        return entry.path if isinstance(entry, os.DirEntry) else str(entry)
    if isinstance(entry, bytes):
        text = entry[: _LONGEST + 1].decode(errors="replace")
        return text if text.isprintable() and "\ufffd" not in text else ""
    if isinstance(entry, dict):
        members: Any = entry.values()
    elif isinstance(entry, list | tuple | numpy.ndarray) or _is_of_pandas(entry):
        members = entry
    else:
        return ""
    texts = (str(member) for member in islice(members, _MEMBERS) if isinstance(member, str | os.PathLike))
    return next(filter(looks_like_path, texts), "")


def looks_like_path(text: str) -> bool:
    """A path, an address or a file's name; a sentence is none, unless it ends like a file's name."""
    if not 1 < len(text) <= 4096 or "\n" in text:
        return False
    if _EXTENSION.search(text):
        return True
    return text.startswith(os.sep) or (("/" in text or os.sep in text) and not any(map(str.isspace, text)))


def _length(value: Any) -> int | None:
    try:
        return len(value)
    except Exception:
        return None


def _plain(index: Any) -> Any:
    try:
        return whole(index)  # numbers of numpy and torch too
    except TypeError:
        return index


# --- what the error says ---


def _named_by(error: BaseException | None) -> str:
    names = [_text_of(cause.filename) for cause in causes(error) if isinstance(cause, OSError)]
    return next(filter(None, names), "")


def _in_use(error: BaseException | None) -> str:
    """A path among the variables of the calls that failed: an existing file if there is one, else the innermost."""
    candidates = list(islice(_paths_in_use(error), _CANDIDATES))
    return min(candidates, key=_doubt) if candidates else ""


def _paths_in_use(error: BaseException | None) -> Iterator[str]:
    for cause in causes(error):
        for call in islice(reversed(ended_calls(cause)), _CALLS):
            if module_of(call) not in NOT_THE_USERS:
                values = [value for value in call.tb_frame.f_locals.values() if isinstance(value, str | os.PathLike)]
                yield from filter(looks_like_path, map(str, values))


def _doubt(path: str) -> int:
    return 0 if os.path.isfile(path) else 2 if os.path.isdir(path) else 1


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, then what it was raised from, or while handling."""
    for _ in range(_DEEPEST):
        if error is None:
            return
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def ended_calls(error: BaseException) -> list[TracebackType]:
    """The calls of a traceback, outermost first, without those that are still running.

    To read the variables of a running call leaves a copy of them there, before Python 3.13, and the error is one of
    them: it would live, with all that its traceback holds, for as long as the call does.
    """
    running = {id(frame) for frame, _ in walk_stack(sys._getframe())}
    calls, call = [], error.__traceback__
    while call:
        if id(call.tb_frame) not in running:
            calls.append(call)
        call = call.tb_next
    return calls


def module_of(call: TracebackType) -> str:
    """The package that a call is in, by its first name."""
    return str(call.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
