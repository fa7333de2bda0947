"""``next(iter(loader))`` in a loop: the crew of an iterator that was left after a batch or two waits for the next one.

It is used again only where nobody can tell the difference: the workers were started from the same job, byte by byte,
and in the same surroundings, and the data set has no state of its own that we know of. Whatever they have on their
hands is waited for no longer than they would have had to finish if they had been closed.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from holdfast._worker.job import Job
from holdfast.audit.generators import random_objects
from holdfast.errors import IteratorPerStep

from .crew import Crew
from .judge import Judge
from .launchers import FromZygote, Launcher
from .notices import warn
from .roster import GRACE

FEW = 2  # batches, and then the iterator is dropped
IN_A_ROW = 2  # such iterators: a habit
RECENT = 10.0  # seconds from one to the next; who takes more, does not wait for workers to be started


class Parked(NamedTuple):
    """A crew and what it was made of. ``terms`` are all settings that it works by."""

    crew: Crew
    judge: Judge
    launcher: Launcher
    job: Job
    terms: tuple[Any, ...]

    def close(self) -> None:
        self.crew.close()

    def leaves_no_trace(self) -> bool:
        """Whether workers that have loaded something load the next batch as new ones would."""
        job = self.job
        if self.crew.closed or not isinstance(self.launcher, FromZygote):
            return False
        return not job.iterable and job.worker_init_fn is None and not random_objects(job.dataset)

    def is_as_good_as(self, launcher: Launcher, terms: tuple[Any, ...]) -> bool:
        """Whether a new crew of this launcher, on these terms, would do the same."""
        own = self.launcher
        alike = isinstance(own, FromZygote) and isinstance(launcher, FromZygote) and own.is_like(launcher)
        return alike and self.terms == terms


class Parking:
    """Owned by the loader; owns the crew that is parked, and closes it when it ends itself."""

    def __init__(self) -> None:
        self._parked: Parked | None = None
        self._in_a_row, self._last, self._warned = 0, 0.0, False

    def take(self, launcher: Launcher, terms: tuple[Any, ...]) -> Parked | None:
        """The crew that is parked, if it is as good as a new one of this launcher, which is closed then."""
        parked, self._parked = self._parked, None
        if parked is None:
            return None
        try:
            fits = parked.is_as_good_as(launcher, terms) and parked.crew.rest(GRACE)
        except BaseException:
            parked.close()
            launcher.close()
            raise
        if not fits:
            parked.close()
            return None
        launcher.close()
        return parked

    def leave(self, parked: Parked, batches: int) -> None:
        """The iterator that used this crew is gone, after so many batches: park it or close it."""
        if batches > FEW:
            self.forget()
        elif batches:
            self._count()
        if self._parked is None and self._is_habit() and parked.leaves_no_trace():
            self._parked = parked
        else:
            parked.close()

    def forget(self) -> None:
        """An epoch was finished: that is no habit."""
        self._in_a_row = 0

    def warn_of_habit(self) -> None:
        if self._is_habit() and not self._warned:
            self._warned = True
            warn(
                IteratorPerStep(
                    "next(iter(loader)) again and again begins an epoch for every step and throws away all but its "
                    "first batch. Instead: batches = iter(loader) once, then next(batches)"
                )
            )

    def _count(self) -> None:
        now = time.monotonic()
        self._in_a_row = self._in_a_row + 1 if now - self._last < RECENT else 1
        self._last = now

    def _is_habit(self) -> bool:
        return self._in_a_row >= IN_A_ROW and time.monotonic() - self._last < RECENT

    def __reduce__(self) -> tuple[type[Parking], tuple[()]]:
        return Parking, ()  # the crew belongs to this process

    def __del__(self) -> None:
        if self._parked is not None:
            self._parked.close()
