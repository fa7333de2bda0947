"""Paths in a data set: relative ones, and folders that explain why it is empty."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from .anatomy import anatomy
from .finding import Finding, Severity, target
from .graph import USUAL, Limits, walk

_LONGEST = 4096
_NAMES_A_PLACE = re.compile(r"(root|path|dir|directory|folder|[._]file|filename)s?(\[.*\])?$", re.IGNORECASE)
_WILDCARD = re.compile(r"[*?\[{]")
_INDEX = re.compile(r"\[[^\]]*\]$")
_NEAR = Limits(depth=4, objects=500)


def relative_paths(root: object, name: str = "dataset") -> list[Finding]:
    """Relative paths that lead somewhere from the folder the trainer is in now; of a container the first only."""
    found: dict[str, Finding] = {}
    for path, text in texts(root, name):
        owner = _INDEX.sub("", path)
        if owner not in found and not os.path.isabs(text) and _is_there(text):
            found[owner] = Finding(
                path,
                "relative path",
                f"{text!r} is looked for where a worker happens to be, which is not here after a chdir",
                f"{target(path)} = os.path.abspath({text!r})",
                Severity.WARNING,
            )
    return list(found.values())


def is_absolute(text: str) -> bool:
    """Of a path that names one file or folder, be it there or not."""
    return os.path.isabs(text) and not _WILDCARD.search(text)


def names_a_place(path: str) -> bool:
    """Whether an attribute is called as one calls a file or folder: ``dataset.root``, ``dataset.paths[3]``."""
    return bool(_NAMES_A_PLACE.search(path))


def kind_of_emptiness(dataset: object) -> str:
    """What explains that a data set is empty: ``its folder /data/train is empty``; "" when nothing is seen."""
    places = [(path, text) for path, text in texts(dataset, "dataset", _NEAR) if "://" not in text]
    named = [text for path, text in places if _NAMES_A_PLACE.search(path)]
    others = [text for _, text in places if os.path.isabs(text)]
    return next((hint for hint in map(_emptiness_of, named + others) if hint), "")


def _emptiness_of(text: str) -> str:
    fixed, *pattern = _WILDCARD.split(text, maxsplit=1)
    place = os.path.dirname(fixed) if pattern else fixed
    try:
        place = os.path.abspath(place)  # FileNotFoundError when the folder we are in was removed
        if not os.path.exists(place):
            return f"{place} does not exist"
        if not os.path.isdir(place):
            return "" if os.path.getsize(place) else f"its file {place} is empty"
        with os.scandir(place) as entries:
            if next(entries, None) is not None:
                return ""
        return f"its folder {place} is an empty mount" if os.path.ismount(place) else f"its folder {place} is empty"
    except OSError as error:
        return f"{place} cannot be read: {error.strerror}"


def texts(root: object, name: str = "dataset", limits: Limits = USUAL) -> Iterator[tuple[str, str]]:
    """(path, text) of whatever looks like a path in the file system."""
    return texts_among(walk(root, name, limits))


def texts_among(walked: Iterable[tuple[str, object]]) -> Iterator[tuple[str, str]]:
    """The same, for who walks once and looks for several things."""
    for path, value in walked:
        if type(value) is str:
            if 0 < len(value) < _LONGEST and value.isprintable() and _is_path(path, value):
                yield path, value
        elif ("pathlib", "PurePath") in anatomy(value).bases:
            try:
                yield path, PurePath.__str__(value)
            except AttributeError:
                pass  # half made


def _is_path(path: str, text: str) -> bool:
    """A bare word is a path only when its attribute says so: ``split = "train"`` is not, beside a folder train."""
    return os.sep in text or bool(_NAMES_A_PLACE.search(path)) or bool(os.path.splitext(text)[1])


def _is_there(text: str) -> bool:
    try:
        return os.path.exists(text)
    except (OSError, ValueError):
        return False
