"""Works that grow: with the workers, the batch or the data set."""

from __future__ import annotations

from bench.contest import Turn
from bench.works.moments import Numbered, Working, numbered
from bench.works.spin import spin, turns_for
from bench.works.work import Work

SECONDS_PER_BATCH, SECONDS_PER_SAMPLE = 100e-6, 5e-6  # about; for epochs of about the same length


def busy(turn: Turn) -> Work:
    """0.2 ms of processor work for each sample."""
    turns = turns_for(turn, spin, 0.2e-3, 100_000)
    return numbered(Working(16 * turn.scaled(150, 50), (16,), turns), 16)


def by_batch(turn: Turn) -> Work:
    """16 floats a sample; an epoch takes the fastest about a third of a second at any batch size."""
    size = int(turn.settings["batch_size"])
    seconds = turn.scaled(300, 100) / 1000
    batches = max(10, round(seconds / (SECONDS_PER_BATCH + size * SECONDS_PER_SAMPLE)))
    return numbered(Numbered(batches * size), size, variant=str(size))


def by_length(turn: Turn) -> Work:
    return numbered(Numbered(int(turn.settings["length"])), 1024, shuffle=True, variant=str(turn.settings["length"]))
