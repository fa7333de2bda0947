"""Which files a path stands for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.targets.mistake import Mistake

STANDARD_INPUT = "-"
_SUFFIXES = {".py", ".pyw", ".ipynb"}
_SKIPPED = {"__pycache__", "node_modules", "build", "dist", "site-packages", "venv"}


def files(path: str) -> Iterator[Path]:
    """The file itself, whatever it is called; or all Python files and notebooks of a folder, in order. Hidden folders,
    virtual environments and what tools have built are left out."""
    found = Path(path)
    if found.is_file():
        yield found
    elif found.is_dir():
        inside = list(_inside(found))
        if not inside:
            raise Mistake(f"there is no Python file in {path}", "hidden and build folders and environments are skipped")
        yield from inside
    else:
        raise Mistake(f"there is no {path}", "give files, folders, or - for standard input")


def _inside(folder: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_skipped(Path(here), name))
        for name in sorted(names):
            if Path(name).suffix in _SUFFIXES and not name.startswith("."):
                yield Path(here, name)


def _is_skipped(here: Path, name: str) -> bool:
    return name.startswith(".") or name in _SKIPPED or (here / name / "pyvenv.cfg").exists()
