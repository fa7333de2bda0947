"""Which files are there: the folders under a root walked through, and a pattern that names are held against."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

_FOLDERS = r"(?:(?!\.)[^/]+/)*"  # any number of them, none hidden
_TOKEN = re.compile(r"\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)


def list_files(root: str, pattern: str) -> list[bytes]:
    """Relative names of the files that match, with ``/`` between folders, sorted as bytes.

    Links are followed, to folders too, but not in circles; one that leads nowhere is no file. A folder that cannot be
    read is an error, not an empty folder.
    """
    matches, parts = _matcher(pattern), pattern.split("/")
    hidden_too = any(part.startswith(".") for part in parts)
    depth = len(parts) if "**" not in parts else None
    found: list[bytes] = []
    folders: list[tuple[str, tuple[str, ...]]] = [("", (os.path.realpath(root),))]
    while folders:
        inside, chain = folders.pop()
        with os.scandir(os.path.join(root, inside)) as entries:
            for entry in entries:
                name = inside + entry.name
                if entry.name.startswith(".") and not hidden_too:
                    continue
                if not entry.is_dir():
                    if entry.is_file() and matches(name):
                        found.append(os.fsencode(name))
                elif (depth is None or name.count("/") + 1 < depth) and (further := _further(entry, chain)):
                    folders.append((name + "/", further))
    return sorted(found)


def _further(entry: os.DirEntry[str], chain: tuple[str, ...]) -> tuple[str, ...]:
    """Where the links on the way to this folder lead; nothing when it would be a circle."""
    if not entry.is_symlink():
        return chain
    target = os.path.realpath(entry.path)
    return () if target in chain else (*chain, target)


def _matcher(pattern: str) -> Callable[[str], object]:
    *folders, last = pattern.split("/")
    if not pattern or any(part in ("", ".", "..") for part in (*folders, last)):
        raise ValueError(f"pattern should be relative, such as '**/*.jpg', but got pattern={pattern!r}")
    expression = "".join(_FOLDERS if part == "**" else _one(part) + "/" for part in folders)
    return re.compile(expression + (_FOLDERS + _one("*") if last == "**" else _one(last))).fullmatch


def _one(part: str) -> str:
    """One name between slashes; a hidden one is meant only where the pattern begins with a dot."""
    return ("" if part.startswith(".") else r"(?!\.)") + "".join(map(_translated, _TOKEN.findall(part)))


def _translated(token: str) -> str:
    if token == "*":
        return "[^/]*"
    if token == "?":
        return "[^/]"
    if len(token) > 1:
        chosen = re.sub(r"([\\\[])", r"\\\1", token[1:-1])
        return f"[^{chosen[1:]}]" if chosen[0] == "!" else f"[{chosen}]"
    return re.escape(token)
