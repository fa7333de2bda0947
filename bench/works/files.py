"""Files that are written once, before anything is timed, and read by whoever comes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path


def written(place: Path, write: Callable[[Path], None]) -> Path:
    """`place`, which `write` has filled: now, or when somebody asked before. What was left unfinished is not found."""
    if not place.exists():
        unfinished = place.with_name(f".{place.name}-{os.getpid()}")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        write(unfinished)
        try:
            unfinished.rename(place)
        except OSError:  # somebody else was quicker
            shutil.rmtree(unfinished)
    return place
