"""Standard output for a command alone, while code of the user's runs that may print to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_clear(wanted: bool = True) -> Iterator[None]:
    """What is printed meanwhile goes to standard error, from workers and from C code too: JSON stays JSON."""
    if not wanted or sys.stdout is None:  # which it is where it was closed before Python came
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
