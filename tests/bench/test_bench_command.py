"""``python -m bench``, with a catalogue of toys."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import catalogue, command, turns
from bench.contest import Contest, FaultResult

TOYS = [
    Contest("first toy", "counts", "turns/s", "toys:start", ("holdfast", "peer", "unable", "raises"), rounds=2),
    Contest("second", "counts too", "turns/s", "toys:start", ("holdfast", "peer of another"), rounds=2),
]


class Met:
    """A table of faults."""

    FAULTS, OUTCOMES = {"killed": "a worker is killed"}, {"finishes": "all came"}
    outcome = "finishes"

    def run(self, quick, only, directory):
        yield FaultResult("holdfast", "killed", self.outcome, 0.5, "")


@pytest.fixture
def published(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setattr(command, "GROUPS", {"toys": TOYS})
    monkeypatch.setattr(command, "FAULTS", (catalogue.Faults("toy-faults", "toys", "met", before="toys"),))
    monkeypatch.setitem(sys.modules, "met", Met())
    monkeypatch.setattr(command, "PUBLISHED", tmp_path / "results")
    monkeypatch.setattr(command, "QUICK", tmp_path / "quick")
    monkeypatch.setattr(command, "_places", lambda directory: (directory / "page.md", directory / "plots"))
    return tmp_path


def held(directory: Path) -> dict[str, list[str]]:
    contests = json.loads((directory / "toys.json").read_text())["contests"]
    return {one["name"]: [result["contender"] for result in one["results"]] for one in contests}


def test_a_whole_run_is_published_and_peers_that_fail_are_no_failure(published, capsys, monkeypatch):
    monkeypatch.setattr(command.tempfile, "mkdtemp", lambda prefix: str(published / "work"))
    (published / "work").mkdir()
    assert command.main([]) == 0
    assert held(published / "results") == {
        "first toy": ["holdfast", "peer", "unable", "raises"],
        "second": ["holdfast", "peer of another"],
    }
    shown = capsys.readouterr()
    assert "failed: ValueError: no <figure>" in shown.out
    assert "reads only files" in shown.out
    assert shown.out.index("faults met by toys") < shown.out.index("first toy: counts")
    assert f"standard error: {published}/work/seats.log" in shown.err
    assert "Traceback" in (published / "work" / "seats.log").read_text()
    assert not (published / "work" / "data").exists()
    assert "load_end" in json.loads((published / "results" / "machine.json").read_text())
    capsys.readouterr()

    assert command.main(["--report-only"]) == 0
    assert "first toy: counts" in capsys.readouterr().out


def test_less_than_a_whole_run_leaves_what_is_published_alone(published, capsys):
    assert command.main(["--only", "first-toy", "--peer", "pee", "--rounds", "1"]) == 0
    assert held(published / "quick") == {"first toy": ["holdfast", "peer"]}
    assert not (published / "results").exists()


def test_a_named_directory_keeps_its_other_contests(published, capsys):
    there = published / "there"
    for only in ("first-toy", "second"):
        assert command.main(["--only", only, "--peer", "peer", "peer of another", "--results", str(there)]) == 0
    assert held(there) == {"first toy": ["holdfast", "peer"], "second": ["holdfast", "peer of another"]}
    with pytest.raises(SystemExit):
        command.main(["--quick", "--only", "second", "--results", str(there)])
    assert "results of another machine" in capsys.readouterr().err


def test_a_failure_of_holdfast_itself_fails_the_run(published, capsys, monkeypatch):
    monkeypatch.setattr(turns, "START_LIMIT", 60.0)
    monkeypatch.setattr(Met, "outcome", "hangs")
    broken = Contest("broken", "no such thing", "turns/s", "nowhere:start", ("holdfast",), rounds=1, quick=True)
    monkeypatch.setattr(command, "GROUPS", {"toys": [broken]})
    monkeypatch.setattr(command.tempfile, "mkdtemp", lambda prefix: str(published / "work"))
    (published / "work").mkdir()
    assert command.main(["--quick"]) == 1
    errors = capsys.readouterr().err
    assert "holdfast failed: broken: holdfast: ModuleNotFoundError: No module named 'nowhere'" in errors
    assert "holdfast failed: toys: holdfast: killed: hangs" in errors


@pytest.mark.parametrize(
    "arguments", [["--only", "nothing"], ["--peer", "nobody"], ["--rounds", "0"], ["--report-only"]], ids=" ".join
)
def test_what_there_is_not_is_said(published, capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_the_driver_imports_neither_torch_nor_a_peer():
    """It lists everything that there is, and takes part in nothing."""
    code = "import sys; from bench.command import main; main(['--list']); sys.exit('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=turns.ROOT)
    assert ran.returncode == 0, ran.stderr
    assert "tiny" in ran.stdout
    assert "torch fork" in ran.stdout
