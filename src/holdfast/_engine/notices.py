"""What goes wrong without an error, said once: a stream that is not divided, numbers that repeat, a shared handle.

``Notices`` is what one loader has settled; ``Ear`` hears what the workers of one crew have noticed.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass
from itertools import combinations

from holdfast._transport.messages import Noticed
from holdfast._worker.job import Job
from holdfast.audit import generators, handles
from holdfast.errors import HoldfastWarning, RepeatedRandom, SharedHandle, UnshardedStream

FEWEST = 2  # items of a stream: a single equal one says nothing


@dataclass(slots=True)
class Notices:
    """What has been looked into: it is not looked for, nor said, again. Owned by the loader, for all its crews."""

    stream: bool = False
    random: bool = False
    handles: bool = False

    def look_for_handles(self, dataset: object) -> None:
        """To be called before this process is forked."""
        if self.handles:
            return
        self.handles = True
        found = handles.shared_by_fork(handles.handles(dataset))
        if found:
            others = f"; and {', '.join(other.path for other in found[1:])}" if found[1:] else ""
            warn(SharedHandle(f"{found[0]}{others}"))


class Ear:
    """Compares what the workers of one crew tell of their first items. ``persistent``: they live for all epochs."""

    def __init__(self, notices: Notices, job: Job, *, persistent: bool, threads: bool) -> None:
        self._notices, self._job, self._persistent = notices, job, persistent
        self._items: dict[int, list[int | None]] = {}
        self.wants_items = not notices.stream and job.iterable and job.shard is None and job.seats > 1
        # What repeats itself: the numbers of one worker in another, unless a stream needs just that to be divided;
        # and those of one epoch in the next, unless the workers go on from there.
        repeats = not persistent or (job.seats > 1 and not job.iterable)
        self.wants_random = not notices.random and repeats and not threads

    def hear(self, seat: int, noticed: Noticed) -> None:
        if self.wants_random and seat == 0:
            self._notices.random = True
            self._compare_random([generators.Drawn(*one) for one in noticed.drawn])
        if self.wants_items and not self._notices.stream:
            self._items[seat] = noticed.items
            self._notices.stream = len(self._items) == self._job.seats
            self._compare_items()

    def _compare_random(self, drawn: list[generators.Drawn]) -> None:
        if not drawn:
            return
        shipped = generators.fingerprints(self._job.dataset)  # the trainer's own have not moved since
        found = generators.repeated(drawn, shipped, persistent=self._persistent)
        if found:
            warn(RepeatedRandom("; ".join(map(str, found))))

    def _compare_items(self) -> None:
        for (one, items), (other, others) in combinations(sorted(self._items.items()), 2):
            if items == others and None not in items and len(set(items)) >= FEWEST:
                self._notices.stream = True
                warn(UnshardedStream(self._unsharded(one, other, len(items))))
                return

    def _unsharded(self, one: int, other: int, count: int) -> str:
        return (
            f"workers {one} and {other} of {type(self._job.dataset).__name__} began with the same {count} items: "
            f"nobody divides the stream, and each item comes {self._job.seats} times, once from every worker. "
            'Instead: DataLoader(..., shard="auto"), or take a share in __iter__ by holdfast.get_worker_info()'
        )


def warn(warning: HoldfastWarning) -> None:
    """As of the line of the user's that runs now."""
    warnings.warn(warning, stacklevel=of_the_user())


def of_the_user() -> int:
    """The stack level of the first caller that is neither ours nor torch's: where the loop over the loader is."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("holdfast", "torch"):
        level, frame = level + 1, frame.f_back
    return level
