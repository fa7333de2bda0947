"""Options of ``[tool.holdfast]`` itself, and of ``[tool.holdfast.run]``, which go before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.targets.project import project

from .options import read

_PARTS = ("lint", "run")


def settings(folder: Path) -> dict[str, Any]:
    found = project(folder)
    own = {name: value for name, value in found.settings.items() if name not in _PARTS}
    return read(own | found.part("run"), f"{found.file}, [tool.holdfast]")
