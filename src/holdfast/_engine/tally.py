"""What is counted over all crews of one loader."""

from __future__ import annotations

from dataclasses import dataclass, fields
from time import perf_counter


@dataclass(slots=True, eq=False)
class Tally:
    """Plain numbers that outlive the crews and go wherever the loader is copied or pickled to."""

    restarts: int = 0
    epochs: int = 0  # that were begun
    batches: int = 0  # that were given
    waited: float = 0.0  # seconds that whoever iterates has spent in next()
    seconds: float = 0.0  # ... and altogether, from iter() to the last batch

    def begin(self) -> float:
        """An epoch; the time, by which `clock` counts."""
        self.epochs += 1
        return perf_counter()

    def clock(self, asked: float, since: float) -> float:
        """The batch that was asked for is given, and the one before was at ``since``. The time now."""
        now = perf_counter()
        self.waited += now - asked
        self.seconds += now - since
        return now

    def __iadd__(self, other: Tally) -> Tally:
        for field in fields(Tally):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        return self
