"""The ledger: what it keeps, counts, writes and says."""

from __future__ import annotations

import copy
import json
import logging
import os
import pickle
import signal
import subprocess
import sys
import weakref
from collections import deque
from typing import Any

import numpy as np
import pytest

from holdfast.errors import RemoteError, Verdict, WorkerDied, WorkerStalled
from holdfast.ledger import Fault, Ledger


class TwoArguments(Exception):
    """Pickles, and does not come back."""

    def __init__(self, code: int, name: str) -> None:
        super().__init__(f"{code} {name}")
        self.code, self.name = code, name


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def fault(index: Any = 7, error: BaseException | None = None, **facts: Any) -> Fault:
    usual = {
        "when": 1.0,
        "kind": "exception",
        "epoch": 0,
        "batch": 3,
        "item": None,
        "where": "",
        "traceback": "Traceback ...",
        "seat": 1,
        "life": 0,
        "pid": 41,
        "attempts": 1,
        "action": "skipped",
    }
    return Fault(index=index, error=error or OSError("image file is truncated"), **(usual | facts))


def died(**facts: Any) -> Fault:
    error = WorkerDied(3, 41233, Verdict(-9), 118, 7552, [7552, 7553], 2, "")
    return fault(7552, error, **({"kind": "death", "batch": 118, "seat": 3, "action": "restarted"} | facts))


def quiet(**options: Any) -> Ledger:
    return Ledger(warn=False, **options)


# One fault


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (
            fault(7552, batch=118, where="/data/train/img_0812.jpg", instead=3391),
            "sample 7552 (/data/train/img_0812.jpg) of batch 118: OSError: image file is truncated; "
            "skipped, 3391 instead",
        ),
        (
            fault(attempts=3, action="raised"),
            "sample 7 of batch 3: OSError: image file is truncated; raised after 3 attempts",
        ),
        (
            fault(None, ValueError("a\nb"), kind="batch", action="raised", lost=(1, 2, 3)),
            "batch 3: ValueError: a; raised, 3 samples not delivered",
        ),
        (
            fault(None, KeyError(), kind="stream", item=12, action="lost"),
            "item 12 of worker 1 of batch 3: KeyError; lost",
        ),
        (fault(None, batch=None, action="waited"), "outside of a batch: OSError: image file is truncated; waited"),
        (died(), "sample 7552 of batch 118: worker 3 (pid 41233) was killed by SIGKILL; restarted"),
    ],
)
def test_a_fault_is_one_line(entry: Fault, line: str):
    assert str(entry) == line


def test_a_long_path_keeps_its_ends():
    line = str(fault(where="/data/" + "deep/" * 60 + "img_0812.jpg"))
    assert "(/data/" in line
    assert "img_0812.jpg)" in line
    assert len(line) < 200


def test_a_fault_as_json_has_the_error_with_its_attributes():
    told = json.loads(json.dumps(fault(np.int64(7), OSError(5, "I/O error", "/data/x")).to_dict()))
    assert told["index"] == 7
    assert told["error"]["type"] == "OSError"
    assert told["error"]["attributes"] == {"errno": 5, "strerror": "I/O error", "filename": "/data/x"}
    odd = fault({1, 2}, TwoArguments(3, "x"), lost=(np.int64(1), "b")).to_dict()
    assert odd["index"] == repr({1, 2})
    assert odd["lost"] == [1, "b"]
    assert odd["error"]["attributes"] == {"code": 3, "name": "x"}
    json.dumps(fault(float("nan"), died().error).to_dict(), allow_nan=False)


# Keeping


def test_the_newest_are_kept_and_all_are_counted():
    ledger = quiet(limit=3)
    for index in range(10):
        ledger.note(fault(index))
    ledger.note(died())
    assert [entry.index for entry in ledger] == [8, 9, 7552]
    assert (len(ledger), ledger.dropped) == (3, 8)
    assert ledger.counts() == {("exception", "skipped"): 10, ("death", "restarted"): 1}
    assert ledger[-1].kind == "death"
    assert [entry.index for entry in ledger[:2]] == [8, 9]


def test_bad_indices_are_remembered_whatever_their_type():
    ledger = quiet()
    for index in (7, np.int64(7), {"a": [1]}, "name", None):
        ledger.note(fault(index))
    ledger.note(fault(8, action="replaced"))
    ledger.note(fault(7, action="known bad"))
    ledger.note(fault(9, action="tried again"))
    assert ledger.bad == {7, "{'a': [1]}", "name", 8}
    assert ledger.is_bad(np.int64(8))
    assert ledger.is_bad({"a": [1]})
    assert not ledger.is_bad(9)
    assert str(ledger.why({"a": [1]})) == "image file is truncated"
    assert (ledger.skipped, ledger.distinct_bad) == (6, 4)


def test_what_is_known_from_elsewhere_is_bad_too():
    ledger = quiet()
    ledger.remember(7)
    ledger.remember(8, OSError("seen before"))
    assert (ledger.bad, ledger.skipped, len(ledger)) == ({7, 8}, 0, 0)
    assert (ledger.why(7), str(ledger.why(8)), ledger.why(9)) == (None, "seen before", None)


def test_filters_combine():
    ledger = quiet()
    ledger.note(fault(1, where="/a/x.jpg"))
    ledger.note(fault(np.int64(2), ValueError("v"), where="/b/y.jpg", epoch=1, seat=0))
    ledger.note(died())
    found = {
        "kind": ledger.filter(kind="death"),
        "error": ledger.filter(error=(ValueError, WorkerDied), seat=3),
        "where": ledger.filter(where="/b/"),
        "ends": ledger.filter(where=lambda where: where.endswith("x.jpg")),
        "index": ledger.filter(index=2, epoch=1, action="skipped"),
        "none": ledger.filter(index=1, epoch=1),
    }
    indices = {name: [entry.index for entry in faults] for name, faults in found.items()}
    assert indices == {"kind": [7552], "error": [7552], "where": [2], "ends": [1], "index": [2], "none": []}


def test_a_fault_keeps_no_frame_alive_and_leaves_other_exceptions_alone():
    class Sample:
        pass

    held: deque[weakref.ref[Sample]] = deque()

    def load() -> None:
        sample = Sample()
        held.append(weakref.ref(sample))
        raise ValueError("bad")

    ledger = quiet()
    try:
        raise KeyError("of the user, who handles it while the loader runs")
    except KeyError as outer:
        try:
            load()
        except ValueError as error:
            ledger.note(fault(error=error, traceback=""))
        untouched = outer.__traceback__ is not None
    assert untouched
    assert held[0]() is None
    assert "in load" in ledger[0].traceback


def test_of_a_raised_error_a_copy_is_kept_that_holds_no_frames():
    ledger = quiet()
    with pytest.raises(ValueError, match="bad") as caught:
        raise ValueError("bad")
    ledger.note(fault(error=caught.value, action="raised"))
    assert caught.value.__traceback__ is not None
    assert (type(ledger[0].error), ledger[0].error.__traceback__) == (ValueError, None)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda ledger: pickle.loads(pickle.dumps(ledger))])
def test_a_ledger_can_be_copied_with_errors_that_cannot(copied, tmp_path):
    class Local(Exception):
        pass

    ledger = quiet(file=tmp_path / "faults.jsonl")
    ledger.seen = 100
    unpicklable = ValueError("holds a generator")
    unpicklable.held = (n for n in ())
    for error in (TwoArguments(3, "x"), Local("local"), unpicklable, OSError(5, "I/O error")):
        ledger.note(fault(error=error))
    twin = copied(ledger)
    assert [str(entry.error).partition(" [HF")[0] for entry in twin][:2] == ["3 x", "local"]
    assert twin[0].error.name == "x"
    assert isinstance(twin[2].error, RemoteError)
    assert twin[2].error_type == "ValueError"
    assert twin[3].error.errno == 5
    assert (twin.seen, twin.counts(), twin.bad) == (100, ledger.counts(), {7})
    assert twin.why(7).errno == 5
    twin.note(fault())
    assert (len(ledger), len(twin)) == (4, 5)
    assert len((tmp_path / "faults.jsonl").read_text().splitlines()) == 5


# The file


def test_each_fault_is_on_disk_before_the_process_can_be_killed(tmp_path):
    program = (
        "import os, signal, sys, test_ledger\n"
        "ledger = test_ledger.quiet(file=sys.argv[1])\n"
        "for index in range(3): ledger.note(test_ledger.fault(index))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "faults.jsonl"
    path.write_text('{"index": "of an earlier run"}\n')
    here = os.path.dirname(__file__)
    ended = subprocess.run([sys.executable, "-c", program, path], env=os.environ | {"PYTHONPATH": here}, check=False)
    assert ended.returncode == -signal.SIGKILL
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["index"] for line in lines] == ["of an earlier run", 0, 1, 2]
    assert lines[1]["error"]["text"] == "image file is truncated"


def test_a_file_that_cannot_be_written_is_said_once_and_stops_nothing(tmp_path, caplog):
    ledger = quiet(file=tmp_path / "missing" / "faults.jsonl")
    ledger.note(fault(1))
    ledger.note(fault(2))
    assert len(ledger) == 2
    (record,) = caplog.records
    assert "No such file or directory" in record.message


def test_a_relative_path_is_meant_from_where_the_ledger_was_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = quiet(file="faults.jsonl")
    monkeypatch.chdir("/")
    ledger.note(fault())
    assert (tmp_path / "faults.jsonl").exists()


# What it says


@pytest.fixture
def said(caplog):
    """Notes faults, and gives what was logged about them."""

    def note(ledger: Ledger, *faults: Fault) -> list[str]:
        caplog.clear()
        for entry in faults:
            ledger.note(entry)
        assert {(record.name, record.levelno) for record in caplog.records} <= {("holdfast", logging.WARNING)}
        return [record.message for record in caplog.records]

    return note


def test_the_first_of_each_class_is_said_at_once_and_a_raised_one_never(said):
    ledger = Ledger(clock=Clock())
    assert said(ledger, fault(1), fault(2), fault(3, ValueError("v")), fault(4, action="tried again"), died()) == [
        "holdfast: sample 1 of batch 3: OSError: image file is truncated; skipped",
        "holdfast: sample 3 of batch 3: ValueError: v; skipped (and 1 more since)",
        "holdfast: sample 4 of batch 3: OSError: image file is truncated; tried again",
        "holdfast: sample 7552 of batch 118: worker 3 (pid 41233) was killed by SIGKILL; restarted",
    ]
    assert said(ledger, fault(5, KeyError("k"), action="raised")) == []
    assert said(Ledger(warn=False), fault()) == []


def test_of_a_stall_the_whole_report_is_said_as_it_is_not_raised(said):
    error = WorkerStalled(
        0, 9, 3, 7, [7], 61.0, "fetching sample 7 of batch 3", "waits in recvfrom", 'File "x", line 3', ""
    )
    (line, *report) = said(Ledger(), fault(error=error, kind="stall", action="reported"))[0].splitlines()
    assert line == "holdfast: sample 7 of batch 3: worker 0 (pid 9) made no progress for 61 s; reported"
    assert any("waits in recvfrom" in each for each in report)
    assert any('File "x", line 3' in each for each in report)


def test_after_that_one_line_in_half_a_minute_counts_the_rest(said):
    clock = Clock()
    ledger = Ledger(clock=clock)
    assert len(said(ledger, *map(fault, range(42)))) == 1
    clock.now = 29.0
    assert said(ledger, fault(42)) == []
    clock.now = 31.0
    assert said(ledger, fault(43)) == [
        "holdfast: sample 43 of batch 3: OSError: image file is truncated; skipped (and 42 more since)"
    ]
    assert said(ledger, fault(44)) == []


def test_where_warnings_are_errors_a_fault_that_was_survived_ends_nothing():
    program = "import test_ledger as t; l = t.Ledger(); l.note(t.fault()); l.end_epoch(0, 5)"
    ran = run_python("-W", "error", "-c", program)
    assert ran.stderr == (
        "holdfast: sample 7 of batch 3: OSError: image file is truncated; skipped\n"
        "holdfast: epoch 0: 1 of 5 samples failed: 1 skipped (loader.faults has them)\n"
    )


def test_an_epoch_with_faults_ends_with_one_line(said, caplog):
    ledger = Ledger(limit=2)
    said(ledger, *(fault(index, epoch=3) for index in range(10)))
    said(ledger, fault(20, epoch=3, action="replaced"), fault(21, epoch=3, action="replaced"), died(epoch=3))
    caplog.clear()
    ledger.end_epoch(3, 50000)
    ledger.end_epoch(4, 50000)
    assert [(record.name, record.levelno, record.message) for record in caplog.records] == [
        (
            "holdfast",
            logging.WARNING,
            "holdfast: epoch 3: 12 of 50000 samples failed: 10 skipped, 2 replaced; 1 worker restarted "
            "(loader.faults has them)",
        )
    ]


def test_an_epoch_that_was_left_is_not_counted_with_a_later_one(said, caplog):
    ledger = Ledger()
    said(ledger, fault(epoch=0))
    caplog.clear()
    ledger.end_epoch(1, 10)
    assert not caplog.records
    said(ledger, fault(epoch=2, action="tried again"))
    caplog.clear()
    ledger.end_epoch(2, 10)
    assert [record.message for record in caplog.records] == [
        "holdfast: epoch 2: 1 tried again (loader.faults has them)"
    ]


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A process in which nobody set up logging."""
    environment = os.environ | {"PYTHONPATH": os.path.dirname(__file__)}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True)


def test_printed_it_is_a_table_that_ends():
    ledger = quiet(limit=40)
    assert (str(ledger), ledger.summary(), repr(ledger)) == ("no faults", "no faults", "<Ledger: no faults>")
    ledger.seen = 800
    for index in range(51):
        ledger.note(fault(index, where=f"/data/{index}.jpg"))
    lines = str(ledger).splitlines()
    assert lines[0] == "51 of 800 samples failed: 51 skipped" == ledger.summary()
    assert lines[1].split() == ["epoch", "batch", "sample", "where", "error", "action"]
    assert lines[2].split()[:4] == ["0", "3", "11", "/data/11.jpg"]
    assert lines[-2:] == ["... and 20 more", "(11 earlier ones are counted and no longer kept)"]
    assert len(lines) == 2 + 20 + 2


def test_all_of_it_as_json():
    ledger = quiet()
    ledger.note(fault(1))
    ledger.note(died())
    assert [entry["index"] for entry in json.loads(ledger.to_json(indent=2))] == [1, 7552]


def test_it_can_be_read_while_faults_are_noted():
    ledger = quiet()
    ledger.note(fault())
    for _ in ledger:
        ledger.note(fault())
    assert len(ledger) == 2


def test_no_torch_is_needed():
    program = "import holdfast.ledger, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
