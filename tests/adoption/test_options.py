"""Options come from the command line or the nearest pyproject.toml; a wrong one is a sentence that lists the valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from adoption_runs import run

from holdfast import Debug, Quarantine, Raise, Replace, Retry, Skip
from holdfast.adoption.options import OPTIONS, policy_of, read
from holdfast.targets.mistake import Mistake

SHOWS = "import os; print(os.environ['HOLDFAST_RUN'])"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project" / "scripts").mkdir(parents=True)
    (tmp_path / "project" / "scripts" / "shows.py").write_text(SHOWS)
    return tmp_path / "project"


def said(folder: Path, *words: str) -> dict[str, Any]:
    ran = run(folder, "--no-warm", *words, "scripts/shows.py")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_the_command_line_wins_over_the_nearest_file(folder: Path):
    (folder.parent / "pyproject.toml").write_text("[tool.holdfast.run]\nmax_restarts = 1\n")
    (folder / "pyproject.toml").write_text(
        '[tool.holdfast.run]\non-error = "skip"\nnum_workers = 2\nfault_log = "faults.jsonl"\nquiet = true\n'
    )
    terms = said(folder, "--num-workers", "4", "--max-worker-memory", "1.5G")
    log = str(folder / "faults.jsonl")
    assert terms["options"] == {"on_error": "skip", "num_workers": 4, "fault_log": log, "max_worker_memory": 3 * 2**29}
    assert terms["quiet"] is True


def test_options_may_stand_in_the_table_of_holdfast_itself_beside_those_of_lint(folder: Path):
    (folder / "pyproject.toml").write_text(
        '[tool.holdfast]\non_error = "skip"\nmax_restarts = 1\n[tool.holdfast.lint]\nlevel = "E"\n'
        "[tool.holdfast.run]\nmax_restarts = 2\n"
    )
    assert said(folder)["options"] == {"on_error": "skip", "max_restarts": 2}


def test_a_file_that_does_not_speak_of_us_says_nothing(folder: Path):
    (folder / "pyproject.toml").write_text("[project]\nname = 'theirs'\n")
    assert said(folder)["options"] == {}


@pytest.mark.parametrize(
    ("text", "mistake", "hint"),
    [
        ("[tool.holdfast.run]\nretries = 3", "there is no option retries", "there are on_error, stall_timeout, "),
        ("[tool.holdfast.run]\nstart = 'thread'", "start cannot be 'thread'", "valid: auto, zygote, "),
        ("[tool.holdfast.run]\nquiet = 'yes'", "quiet cannot be 'yes'", "valid: true or false"),
        ("[tool.holdfast]\nretries = 3", "there is no option retries", "there are on_error, stall_timeout, "),
        ("[tool.holdfast]\nrun = 3", "tool.holdfast.run is a table of options, and not 3", ""),
        ("[tool.holdfast.run", "cannot be read: ", ""),
    ],
)
def test_a_mistake_in_the_file_is_named_with_the_file(folder: Path, text: str, mistake: str, hint: str):
    (folder / "pyproject.toml").write_text(text)
    ran = run(folder, "scripts/shows.py")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"holdfast: {folder / 'pyproject.toml'}")
    assert mistake in ran.stderr
    assert hint in ran.stderr


@pytest.mark.parametrize(
    ("words", "mistake"),
    [
        (["--on-error", "ignore", "scripts/shows.py"], "--on-error cannot be 'ignore'\n  valid: raise, skip, "),
        (["scripts/nowhere.py"], "there is no file scripts/nowhere.py\n  valid are script.py, and -m module"),
    ],
)
def test_a_mistake_on_the_command_line_is_a_sentence(folder: Path, words: list[str], mistake: str):
    ran = run(folder, *words)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"holdfast: {mistake}")


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("raise", Raise()),
        ("skip", Skip()),
        ("skip:10", Skip(limit=10)),
        ("skip:0.01", Skip(limit=0.01)),
        ("retry:2,debug", Retry(2) | Debug()),
        ("replace", Replace()),
        ("retry:3", Retry(3)),
        ("retry:3,skip:2", Retry(3) | Skip(limit=2)),
        ("retry, quarantine:/data/bad.jsonl", Retry() | Quarantine("/data/bad.jsonl")),
    ],
)
def test_a_policy_is_a_few_words(text: str, policy: Any):
    assert policy_of(text) == policy


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("on_error", "skip:two"),
        ("on_error", "skip:1.5"),
        ("on_error", "retry:-1"),
        ("on_error", "quarantine:"),
        ("on_error", ""),
        ("stall_timeout", "-1"),
        ("stall_timeout", "nan"),
        ("max_restarts", "-1"),
        ("num_workers", 1.5),
        ("num_workers", True),
        ("recycle_after", "0"),
        ("max_worker_memory", "2X"),
        ("max_shared_memory", "0"),
        ("fault_log", ""),
    ],
)
def test_what_is_not_valid_is_a_mistake(name: str, value: Any):
    with pytest.raises(Mistake, match="cannot be") as caught:
        read({name: value})
    assert caught.value.hint == f"valid: {OPTIONS[name].valid}"


def test_relative_paths_are_those_of_here():
    read_here = read({"fault_log": "faults.jsonl", "on_error": "quarantine:bad.jsonl"})
    assert read_here == {
        "fault_log": str(Path.cwd() / "faults.jsonl"),
        "on_error": f"quarantine:{Path.cwd() / 'bad.jsonl'}",
    }
