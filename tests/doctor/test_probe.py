"""A probe tells what it can, has its limits, and takes everything that it started with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time

import psutil

from holdfast.doctor import probe
from holdfast.doctor.probe import Note, Report


def test_all_that_it_reports_comes_however_much_it_is():
    def work(report: Report, note: Note) -> None:
        report(b"x" * 5_000_000)
        report({"pid": os.getpid()})

    outcome = probe.run(work, limit=20, patience=20)
    large, told = outcome.told
    assert (outcome.finished, len(large)) == (True, 5_000_000)
    assert told["pid"] != os.getpid()


def test_what_it_raises_is_told_after_what_it_reported():
    def work(report: Report, note: Note) -> None:
        report(1)
        raise KeyError("gone")

    outcome = probe.run(work, limit=20, patience=20)
    assert (outcome.told, outcome.finished) == ((1,), False)
    assert outcome.raised.strip().endswith("KeyError: 'gone'")


def test_its_death_is_told_with_the_sample_and_what_it_said():
    def work(report: Report, note: Note) -> None:
        note.on(("a", 7))
        print("last words", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    outcome = probe.run(work, limit=20, patience=20)
    assert outcome.verdict is not None
    assert (outcome.verdict.signal, outcome.verdict.stderr, outcome.sample) == ("SIGKILL", "last words", "('a', 7)")


def test_one_sample_that_takes_too_long_is_a_stall_and_many_are_not():
    def many(report: Report, note: Note) -> None:
        for index in range(20):
            note.on(index)
            time.sleep(0.02)
            note.off()

    def one(report: Report, note: Note) -> None:
        note.on(3)
        time.sleep(60)

    assert probe.run(many, limit=20, patience=0.3).finished
    outcome = probe.run(one, limit=20, patience=0.3)
    assert outcome.stall is not None
    assert (outcome.sample, "sleep" in outcome.stall.why) == ("3", True)
    assert "test_probe.py" in outcome.stall.line


def test_it_is_cut_off_at_its_limit_with_all_that_it_started():
    def work(report: Report, note: Note) -> None:
        report(subprocess.Popen(["sleep", "1000"]).pid)
        time.sleep(1000)

    outcome = probe.run(work, limit=1.0, patience=20)
    assert not outcome.finished
    (pid,) = outcome.told
    deadline = time.monotonic() + 5
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_files_that_it_reads_stand_where_they_stood():
    with tempfile.TemporaryFile() as file:
        file.write(b"0123456789")
        file.seek(4)

        def work(report: Report, note: Note) -> None:
            report(file.read(3))

        assert probe.run(work, limit=20, patience=20).told == (b"456",)
        assert file.read(3) == b"456"
