"""A stream is read once, and what ends it is told with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from folders import Tape, Whole

from holdfast.scanning.report import finished
from holdfast.scanning.scan import Options
from holdfast.scanning.streaming import scan
from holdfast.targets.mistake import Mistake
from holdfast.targets.target import Target


def report_of(dataset: Any, folder: Path, workers: int | None = 2, **options: Any) -> dict[str, Any]:
    options = {"output": folder / "bad.jsonl", "workers": workers, **options}
    return finished(scan(Target("it", dataset), Options(**options), lambda survey: None))


def items(report: dict[str, Any]) -> list[tuple[str, int, int]]:
    return [(group["kind"], one["worker"], one["item"]) for group in report["groups"] for one in group["examples"]]


def test_a_stream_that_divides_itself_is_read_by_several_once(tmp_path):
    report = report_of(Tape(1001, {40: "nan"}), tmp_path)
    assert (report["read"], report["workers"]) == (1001, 2)
    (odd,) = report["oddities"]
    assert odd["examples"] == [{"worker": 0, "item": 20, "where": ""}]


def test_one_that_does_not_is_read_by_one_and_goes_on_behind_an_error(tmp_path):
    report = report_of(Whole(50, bad=7), tmp_path, workers=None)
    assert (report["read"], report["workers"], report["notes"]) == (50, 1, [])
    assert items(report) == [("corrupt", 0, 7)]


@pytest.mark.parametrize(("event", "kind"), [("raise", "corrupt"), ("crash", "deadly"), ("hang", "deadly")])
def test_what_ends_a_part_of_the_stream_is_told_and_all_the_rest_is_read(tmp_path, event, kind):
    report = report_of(Tape(100, {61: event}), tmp_path, timeout=1.0)
    assert items(report) == [(kind, 1, 30)]
    assert report["read"] == 50 + 31
    (note,) = report["notes"]
    assert note.startswith("the stream of worker 1 ended at item 30")


def test_a_limit_is_kept(tmp_path):
    assert report_of(Tape(1000), tmp_path, limit=10)["read"] == 10


def test_a_stream_has_no_random_share(tmp_path):
    with pytest.raises(Mistake, match="not by --sample"):
        report_of(Tape(10), tmp_path, share=0.5)
