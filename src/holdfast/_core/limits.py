"""What the user allows: every number the machine decides by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    seats: int
    prefetch: int = 2
    """Batches a worker may have on its hands."""
    in_order: bool = True
    bound: bool = False
    """Every seat has its own stream (iterable dataset); otherwise any worker may load any batch."""
    attempts: int = 2
    """Deaths on the same sample of the same batch that make it poison."""
    max_restarts: int | None = None
    """In the machine's life; None for no limit as long as batches keep coming."""
    crash_loop: int = 10
    """Deaths in a row, without a batch completed by anyone, that end the run."""
    recycle_after: int | None = None
    """Batches after which a worker is replaced by a new one; None for never. Streams, only between epochs."""
    run_ahead: int = 128
    """Batches that may wait for their turn, beyond the window, behind a slow one."""
    run_ahead_bytes: int = 256 << 20

    @property
    def window(self) -> int:
        """Batches drawn and not yet delivered, when nobody is slow."""
        return self.seats * self.prefetch

    @property
    def deaths_in_a_row(self) -> int:
        """Two lives of every seat at least: a crew of 16 that is killed as one has not crashed in a loop."""
        return max(self.crash_loop, 2 * self.seats)
