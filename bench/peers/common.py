"""What several peers need."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.contest import Cannot
from bench.works.files import written
from bench.works.work import Work


class Persistent:
    """A DataLoader, of torch or in its manner, whose workers persist until it is closed."""

    def __init__(self, loader: Any, *, ordered: bool = True) -> None:
        self.loader = loader
        self.ordered = ordered

    def __iter__(self) -> Iterator[Any]:
        return iter(self.loader)

    def close(self) -> None:
        self.loader._iterator = None
        gc.collect()


def shards(work: Work, peer: str, write: Callable[[Path, Work], None]) -> Path:
    """The samples of a work in a peer's own format, written when they are first asked for."""
    if work.stored is None:
        raise Cannot("reads only files of its own format; these samples are in memory")
    name = "-".join(filter(None, [peer, work.name, work.variant, str(work.length)]))
    return written(Path(work.directory, name), lambda empty: write(empty, work))
