"""Python's garbage collector, while it could only work in vain."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_rest() -> Iterator[None]:
    """For imports. What they make stays, but so much of it makes the collector go through all that there is: torch's
    objects alone take 80 ms, and are an eighth of the time of torch's own import."""
    first, *others = gc.get_threshold()
    gc.set_threshold(0)
    try:
        yield
    finally:
        if gc.get_threshold()[0] == 0:  # no module has set its own
            gc.set_threshold(first, *others)
