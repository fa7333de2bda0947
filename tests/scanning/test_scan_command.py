"""``holdfast scan`` as a person uses it: interrupted, killed, gone on with, read by programs, and used wrongly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from folders import readings
from typer.testing import CliRunner

from holdfast.cli import app

COMMAND = str(Path(sys.executable).parent / "holdfast")
PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
from folders import Numbers

print("made by a chatty program")
def steady(): return Numbers(400, Path("log"), takes=0.01)
def clean(): return Numbers(50)
def bad(): return Chatty(50, wrong={{7: OSError("gone")}})

class Chatty(Numbers):
    def __getitem__(self, key):
        print(f"reading {{key}}\\n", end="", flush=True)  # in one piece: another worker writes to the same place
        return super().__getitem__(key)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "data.py").write_text(PROGRAM.format(here=str(Path(__file__).parent)))
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [COMMAND, "scan", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100)


class Running:
    """A scan in the background; ended, whatever happens."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [COMMAND, "scan", *arguments, "--workers", "2"]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def end(self, send: Callable[[int, int], None], how: int) -> tuple[int, str]:
        send(self.process.pid, how)
        output, _ = self.process.communicate(timeout=60)
        return self.process.returncode, output


@pytest.fixture
def start(program: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def begin(*arguments: str) -> Running:
        started.append(Running(program, *arguments))
        return started[-1]

    yield begin
    for one in started:
        one.process.kill()
        one.process.communicate()


def wait_until(true: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def done(file: Path) -> int:
    return json.loads(file.read_text())["survey"]["count"] if file.exists() else 0


@pytest.mark.slow
def test_a_scan_that_was_killed_goes_on_and_reads_only_the_last_moment_again(program, start):
    log, progress = program / "log", program / "bad.jsonl.progress"
    killed = start("data.py:steady", "--output", "bad.jsonl")
    wait_until(lambda: done(progress) > 100)
    killed.end(os.kill, signal.SIGKILL)
    kept, before = done(progress), readings(log)
    ran = run(program, "data.py:steady", "--output", "bad.jsonl", "--workers", "2", "--json")
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert (report["read"], report["read before"]) == (400, kept)
    assert set(readings(log)) == set(map(str, range(400)))
    assert sum(readings(log).values()) - 400 <= len(before) - kept + 2  # what was being read when it was killed
    assert len(before) - kept <= 240  # of 200 in a second at most: more than one is not lost
    assert not progress.exists()


def test_an_interrupted_scan_says_how_to_go_on(program, start):
    progress = program / "data-steady.bad.jsonl.progress"
    interrupted = start("data.py:steady")
    wait_until(lambda: done(progress) > 20)
    code, output = interrupted.end(os.killpg, signal.SIGINT)  # as a terminal does: to all of its processes
    assert code == 130
    assert output.endswith("next   interrupted: go on with the same command\n")
    assert f"{done(progress):,} of 400 samples read" in output


@pytest.fixture
def here(program: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """The command in this process, which takes a tenth of the time."""
    monkeypatch.chdir(program)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield lambda *arguments: CliRunner().invoke(app, ["scan", *arguments])
    sys.modules.pop("data", None)


def test_nothing_wrong_is_exit_code_0_and_one_line_that_says_so(here):
    ran = here("data.py:clean")
    assert ran.exit_code == 0
    assert "data.py:clean: 50 of 50 samples read" in ran.output
    assert "nothing wrong" in ran.output
    assert "Quarantine" not in ran.output


def test_something_found_is_exit_code_1_and_the_line_of_code_to_use(here):
    ran = here("data.py:bad", "--output", "list.jsonl")
    assert ran.exit_code == 1
    assert "OSError: gone" in ran.output
    assert 'use    DataLoader(..., on_error=holdfast.Quarantine("list.jsonl"))' in ran.output


def test_json_is_alone_on_standard_output_and_the_same_as_the_report(program):
    ran = run(program, "data.py:bad", "--json", "--report", "all/scan.json")
    assert ran.returncode == 1
    report = json.loads(ran.stdout)
    assert report["groups"][0]["examples"] == [{"index": 7, "where": "", "reason": "OSError: gone"}]
    assert json.loads((program / "all/scan.json").read_text()) == report
    assert "reading 7" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--timeout", "soon"], "'soon' is no duration; valid are 500ms, 90s, 5m, 2h"),
        (["--timeout", "0s"], "'0s' is no duration"),
        (["--sample", "120%"], "'120%' is no share of all samples"),
        (["--quarantine", "rotten"], "'rotten' is none of corrupt, deadly, odd, slow"),
        (["--workers", "0"], "--workers"),
    ],
    ids=lambda case: " ".join(case) if isinstance(case, list) else "",
)
def test_an_option_that_is_wrong_says_what_is_valid(arguments, expected):
    ran = CliRunner().invoke(app, ["scan", "data:nothing", *arguments])
    assert ran.exit_code == 2
    assert expected in " ".join(ran.output.replace("│", "").split())


@pytest.mark.slow
def test_a_target_that_is_not_there_is_one_sentence(program):
    ran = run(program, "data.py:nothing")
    assert (ran.returncode, ran.stdout) == (2, "made by a chatty program\n")
    assert ran.stderr.startswith("holdfast: data.py:nothing: there is no nothing\n")
    assert "Traceback" not in ran.stderr
