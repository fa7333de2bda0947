"""When the interpreter ends, so do all crews: before anything that they need is torn down."""

from __future__ import annotations

import atexit
import weakref
from typing import Protocol


class Closes(Protocol):
    def close(self) -> None: ...


_open: weakref.WeakSet[Closes] = weakref.WeakSet()
close_at_exit = _open.add
closed = _open.discard


@atexit.register
def _close_all() -> None:
    for crew in list(_open):
        crew.close()
