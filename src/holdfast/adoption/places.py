"""Paths, as the person who runs the program would write them."""

from __future__ import annotations

import os


def shown(path: str | os.PathLike[str]) -> str:
    """As short as it is clear from here."""
    path = os.fspath(path)
    try:
        relative = os.path.relpath(path)
    except (ValueError, OSError):  # another drive, or a folder that was removed under us
        return path
    return path if relative.startswith(os.pardir) else relative
