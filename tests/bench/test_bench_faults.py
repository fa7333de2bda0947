"""The table of faults: what a case told, and what is made of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.contest import FaultResult
from bench.faults import OUTCOMES, remember, remembered
from bench.faults.belongings import MARK, Belongings
from bench.faults.classify import classify, ending, leftovers, names, told_by

LIMIT = 20.0
LOADING = {"event": "loading", "at": 1.0, "pid": 7}
BATCH = {"event": "batch", "at": 2.0}


def _ended(at: float, missing: int = 0, double: int = 0) -> dict[str, Any]:
    return {"event": "ended", "at": at, "missing": missing, "double": double}


def test_an_epoch_with_each_sample_once_finishes_and_the_time_is_that_of_the_lost_sample() -> None:
    events = [LOADING, BATCH, {"event": "there", "at": 5.5}, BATCH, _ended(9.0)]
    assert classify(events, 3.0, LIMIT) == ("finishes", 2.5, "")


def test_an_epoch_that_ends_well_without_all_samples_is_a_loss() -> None:
    outcome, seconds, text = classify([LOADING, BATCH, _ended(9.0, missing=20, double=1)], 3.0, LIMIT)
    assert (outcome, seconds) == ("loss", 6.0)
    assert text == "20 samples missing, 1 samples double"


def test_an_exception_is_an_error_also_when_the_program_ends_after_it() -> None:
    events = [LOADING, {"event": "error", "at": 4.0, "text": "RuntimeError: gone"}, {"event": "exited", "status": 137}]
    assert classify(events, 3.0, LIMIT) == ("error", 1.0, "RuntimeError: gone")


def test_a_program_that_is_killed_ends() -> None:
    events = [LOADING, BATCH, {"event": "exited", "status": 137, "at": 4.0}]
    assert classify(events, 3.0, LIMIT) == ("ends", 1.0, "killed by SIGKILL")
    assert ending(1) == "exit code 1"


def test_one_that_tells_nothing_more_hangs() -> None:
    assert classify([LOADING, BATCH], 3.0, LIMIT) == ("hangs", None, "no batch within 20 s")


def test_the_reason_of_one_that_cannot_is_kept() -> None:
    events = [{"event": "cannot", "at": 1.0, "text": "no threads"}]
    assert classify(events, None, LIMIT) == ("cannot", None, "no threads")


def test_what_happened_before_the_fault_is_not_told_as_its_result() -> None:
    outcome, seconds, text = classify([LOADING, {"event": "error", "at": 4.0, "text": "late"}], None, LIMIT)
    assert (outcome, seconds, text) == ("error", None, "before the fault was met: late")


def test_without_a_moment_of_the_fault_the_time_counts_from_the_beginning_of_the_epoch() -> None:
    events = [LOADING, BATCH, {"event": "error", "at": 4.0, "text": "no space"}]
    assert classify(events, None, LIMIT, strikes=False) == ("error", 3.0, "no space")
    assert classify([LOADING, BATCH, _ended(9.0)], None, LIMIT, strikes=False) == ("finishes", None, "")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("sample 617 of batch 30", True),
        ("indices [616, 617, 618]", True),
        ("record_key=617", True),
        ('File "x.py", line 617, in get', False),
        ("worker (pid(s) 617) exited", False),
        ("at 0x617", False),
        ("1617 and 6170 and 0.617", False),
    ],
)
def test_a_sample_is_named_by_its_number_and_not_by_that_of_a_line_or_a_process(text: str, named: bool) -> None:
    assert names(text, 617) is named


def test_of_a_wrapped_exception_the_original_is_told() -> None:
    wrapped = "Caught OSError in worker 0.\nOriginal Traceback (most recent call last):\n  File …\nOSError: no space\n"
    assert told_by(RuntimeError(wrapped)) == "OSError: no space"
    assert told_by(RuntimeError("first\nsecond")) == "RuntimeError: first"
    assert told_by(EOFError()) == "EOFError"
    assert told_by(OSError("\x1b[36mcoloured\x1b[39m")) == "OSError: coloured"


def test_what_a_killed_trainer_leaves_is_counted() -> None:
    assert leftovers([], [], 0.5) == ("clean", 0.5, "")
    assert leftovers(["1"], ["a", "b"], 10.0) == ("leaves", None, "1 process, 2 files in /dev/shm")
    assert leftovers([], None, 0.5) == ("clean", 0.5, "files in /dev/shm not counted")


def test_results_survive_a_file(tmp_path: Path) -> None:
    result = FaultResult("torch fork", "killed", "error", 0.25, "RuntimeError: gone")
    assert result.outcome in OUTCOMES
    assert remembered(tmp_path, "torch fork") is None
    remember(tmp_path, result)
    assert remembered(tmp_path, "torch fork") == result


@pytest.fixture
def leader() -> Iterator[subprocess.Popen[bytes]]:
    """A process whose child has left its session, and lost its parent."""
    orphan = f"import subprocess, sys; subprocess.Popen({_SLEEP!r}, start_new_session=True)"
    program = f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {orphan!r}]); time.sleep(60)"
    environment = {**os.environ, MARK: "this one"}
    process = subprocess.Popen([sys.executable, "-c", program], env=environment, start_new_session=True)
    yield process
    process.kill()
    process.wait()


_SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_processes_that_have_left_are_found_and_ended_and_no_others(leader: subprocess.Popen[bytes]) -> None:
    with subprocess.Popen(_SLEEP, start_new_session=True) as stranger:
        belongings = Belongings(leader.pid, "this one")
        until = time.monotonic() + 30
        while not (alive := [one.cmdline() for one in belongings.alive()]) or _SLEEP not in alive:
            assert time.monotonic() < until
        belongings.end()
        assert not belongings.alive()
        assert stranger.poll() is None
        stranger.kill()
