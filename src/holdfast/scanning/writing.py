"""Files of the user's that a scan writes: what the system says against it is told in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.targets.mistake import Mistake


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Its folder is made where it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise Mistake(f"{path} cannot be written: {error.strerror}") from None
