"""Runs rows and says whether the failure showed with torch, and whether holdfast's promise was kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass
from enum import Enum
from threading import Event

from . import running
from .ran import NotSo
from .row import Row, Side


class Mark(Enum):
    KEPT = "✓"
    BROKEN = "✗"
    SHOWN = "shows it"
    NOT_SHOWN = "does not show here"
    NOT_HERE = "not reproducible here"


@dataclass(frozen=True)
class Finding:
    mark: Mark
    text: str
    seconds: float = 0.0


Findings = dict[Side, Finding]


def judge(row: Row, side: Side) -> Finding:
    if missing := (row.not_on_torch if side is Side.TORCH else "") or running.why_not(row):
        return Finding(Mark.NOT_HERE, f"needs {missing}")
    ran = running.run(row, side)
    good, bad = (Mark.SHOWN, Mark.NOT_SHOWN) if side is Side.TORCH else (Mark.KEPT, Mark.BROKEN)
    try:
        found = row.check(side, ran)
        if side is Side.HOLDFAST:
            ran.must(not ran.outlived, f"that nothing lives on ({ran.outlived})")
    except NotSo as difference:
        return Finding(bad, str(difference), ran.seconds)
    return Finding(good, found, ran.seconds)


def judged(rows: Sequence[Row], sides: Sequence[Side], jobs: int) -> Iterator[tuple[Row, Findings]]:
    """Each row with what was found, as they finish. Ends all programs when nobody wants to know any more."""
    stop = Event()
    with ThreadPoolExecutor(jobs) as pool:
        work = {pool.submit(_on_all, row, sides, stop): row for row in rows}
        try:
            for done in as_completed(work):
                yield work[done], done.result()
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            while busy := [each for each in work if not each.done()]:
                running.end_all()
                wait(busy, timeout=0.1)


def _on_all(row: Row, sides: Sequence[Side], stop: Event) -> Findings:
    return {side: judge(row, side) for side in sides if not stop.is_set()}
