"""``[tool.holdfast]`` of the nearest ``pyproject.toml``, for all commands that have settings."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from .mistake import Mistake


class Project(NamedTuple):
    """``file`` is None where there is none; ``settings`` are those of ours that are in it."""

    file: Path | None
    settings: dict[str, Any]

    def part(self, name: str) -> dict[str, Any]:
        """``[tool.holdfast.name]``."""
        found = self.settings.get(name, {})
        if not isinstance(found, dict):
            raise Mistake(f"{self.file}: tool.holdfast.{name} is a table of options, and not {found!r}")
        return found


def project(place: Path) -> Project:
    """The first ``pyproject.toml`` from this file or folder upwards."""
    place = place.resolve()
    for folder in (place, *place.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            return Project(file, _read(file))
    return Project(None, {})


def _read(file: Path) -> dict[str, Any]:
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        ours = toml.loads(file.read_text("utf-8")).get("tool", {}).get("holdfast", {})
    except (OSError, ValueError, AttributeError) as error:
        raise Mistake(f"{file} cannot be read: {error}") from None
    if not isinstance(ours, dict):
        raise Mistake(f"{file}: tool.holdfast is a table of options, and not {ours!r}")
    return ours
