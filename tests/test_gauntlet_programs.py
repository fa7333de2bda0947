"""Every failure of the gauntlet: holdfast keeps its promise, and stock torch shows what it is about."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from holdfast.gauntlet import catalogue, running
from holdfast.gauntlet.judge import Finding, Mark, judge
from holdfast.gauntlet.ran import NotSo
from holdfast.gauntlet.row import Row, Side

ROWS = catalogue.rows()
FIRST = {row.id: row for row in reversed(ROWS)}  # one program for each failure in `make test`, all in `make torture`
# ... but those whose promise other tests look at from all sides: in `make torture` only.
ELSEWHERE = {
    *("F01", "F02", "F03", "F04", "F08", "F10", "F11", "F12", "F20", "F21", "F23", "F24", "F25", "F26", "F28", "F29"),
    *("F30", "F31", "F33", "F34", "F35", "F37", "F38", "F39", "F40", "F41", "F42", "F43", "F44", "F46", "F47", "F48"),
    *("F50", "F51", "F52", "F53", "F54", "F55", "F60", "F61", "F62", "F63", "F64", "F65", "F66", "F67", "F68", "F69"),
    *("F80", "F81", "F84", "F87"),
}
QUICK = ("F05", "F25", "F27", "F32")  # with torch these take two seconds
AT_ONCE = 1 if "PYTEST_XDIST_WORKER" in os.environ else 2  # there the next row may be another process's


def params(rows: list[Row], quick: Callable[[Row], bool]) -> list[Any]:
    return [pytest.param(row, marks=() if quick(row) else pytest.mark.slow, id=row.name) for row in rows]


class Ahead:
    """Judges rows, and the next one of this run at the same time: a program waits for one core most of its time."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows, self._pool = rows, ThreadPoolExecutor(AT_ONCE)
        self._begun: dict[str, Future[Finding]] = {}

    def finding(self, row: Row) -> Finding:
        place = next(place for place, each in enumerate(self._rows) if each is row)
        for each in self._rows[place : place + AT_ONCE]:
            if each.name not in self._begun:
                self._begun[each.name] = self._pool.submit(judge, each, Side.HOLDFAST)
        return self._begun[row.name].result()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        running.end_all()
        self._pool.shutdown()


@pytest.fixture(scope="module")
def ahead(request: pytest.FixtureRequest) -> Iterator[Ahead]:
    items = [item for item in request.session.items if item.path == request.path and "ahead" in item.fixturenames]
    made = Ahead([item.callspec.params["row"] for item in items])
    yield made
    made.close()
    assert running.family(f"{os.getpid()}-") == []


@pytest.fixture(autouse=True)
def leaves_nothing() -> None:
    """Not after each test, as for all others: the program of the next row is running. `ahead` looks at the end."""


@pytest.mark.parametrize("row", params(ROWS, lambda row: row is FIRST[row.id] and row.id not in ELSEWHERE))
def test_holdfast_keeps_its_promise(row: Row, ahead: Ahead):
    finding = ahead.finding(row)
    if finding.mark is Mark.NOT_HERE:
        pytest.skip(finding.text)
    assert finding.mark is Mark.KEPT, finding.text


@pytest.mark.parametrize("row", params([row for row in ROWS if not row.not_on_torch], lambda row: row.id in QUICK))
def test_torch_shows_the_failure_and_would_not_pass_for_holdfast(row: Row):
    if reason := running.why_not(row):
        pytest.skip(reason)
    ran = running.run(row, Side.TORCH)
    print(row.check(Side.TORCH, ran))
    with pytest.raises(NotSo):
        row.check(Side.HOLDFAST, ran)
