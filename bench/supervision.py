"""What supervision (logbook, sentinels, story) costs of the rate. Target: at most 2 % of the rate without."""

from __future__ import annotations

from collections.abc import Iterator

from bench.harness import Options, Row


def supervision(options: Options) -> Iterator[Row]:
    """A place for the measurement: it needs a loader without supervision to compare with, and there is none."""
    yield Row("supervision", "holdfast without", note="not measured: supervision cannot be turned off")
