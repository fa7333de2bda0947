"""`holdfast lint`: where it goes wrong, what to write instead, and an exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from holdfast.cli import app
from holdfast.lint.rule import all_rules, codes

COMMAND = str(Path(sys.executable).parent / "holdfast")
ROOT = Path(__file__).parents[2]
BAD = """\
import os
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __init__(self, folder):
        self.paths = os.listdir(folder)

loader = DataLoader(Images("x"), num_workers=2, collate_fn=lambda batch: batch)
"""
TOLD = """\
train.py:6:22 HL205 W Images has its samples in the order of os.listdir, which differs between hosts and runs
    fix: sorted(os.listdir(folder))
train.py:8:60 HL103 E collate_fn is a lambda, which spawn and forkserver cannot pickle
    fix: def it at the top of the module; functools.partial(function, ...) for what it closes over
1 error, 1 warning in 1 file, 8 lines; why: holdfast explain HL103
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(BAD)
    return tmp_path


def run(*arguments: str, text: str = "") -> Result:
    ran = CliRunner().invoke(app, ["lint", *arguments], input=text)
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    return ran


def test_the_installed_command_tells_place_code_message_and_fix(folder: Path):
    ran = subprocess.run([COMMAND, "lint"], capture_output=True, check=False, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, TOLD, "")


def test_the_installed_command_tells_a_mistake_without_a_traceback(folder: Path):
    ran = subprocess.run([COMMAND, "lint", "nowhere.py"], capture_output=True, check=False, text=True)
    told = "holdfast: there is no nowhere.py\n  give files, folders, or - for standard input\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", told)


def test_nothing_found_is_0(folder: Path):
    ran = run("--ignore", "HL103,HL205")
    assert (ran.exit_code, ran.stdout) == (0, "nothing found in 1 file, 8 lines\n")


def test_standard_input_is_a_file(folder: Path):
    ran = run("-", text=BAD)
    assert (ran.exit_code, ran.stdout) == (1, TOLD.replace("train.py", "<stdin>"))


def test_json_has_the_same(folder: Path):
    ran = run("--json")
    told = json.loads(ran.stdout)
    assert (ran.exit_code, told["files"], told["lines"], told["counts"]) == (1, 1, 8, {"HL103": 1, "HL205": 1})
    assert told["findings"][0] == {
        "path": "train.py",
        "line": 6,
        "column": 22,
        "code": "HL205",
        "level": "W",
        "message": "Images has its samples in the order of os.listdir, which differs between hosts and runs",
        "fix": "sorted(os.listdir(folder))",
        "cell": None,
    }


def test_sarif_has_what_its_standard_asks_for(folder: Path):
    (folder / "with space.py").write_text("def f(:\n")
    ran = run("--sarif")
    told = json.loads(ran.stdout)
    assert (ran.exit_code, told["version"], len(told["runs"])) == (1, "2.1.0", 1)
    driver, results = told["runs"][0]["tool"]["driver"], told["runs"][0]["results"]
    assert (driver["name"], [rule["id"] for rule in driver["rules"]]) == ("holdfast", codes())
    assert all(rule["shortDescription"]["text"] and rule["help"]["text"] for rule in driver["rules"])
    for result in results:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"error", "warning", "note"}
        assert result["message"]["text"]
    places = [result["locations"][0]["physicalLocation"] for result in results]
    assert [place["artifactLocation"]["uri"] for place in places] == ["train.py", "train.py", "with%20space.py"]
    assert places[0]["region"] == {"startLine": 6, "startColumn": 22}


def test_statistics_count_by_rule(folder: Path):
    (folder / "other.py").write_text(BAD)
    lines = run("--statistics").stdout.splitlines()
    assert lines[:2] == [
        "     2  HL103 E a lambda or local function is handed to workers",
        "     2  HL205 W samples are numbered in an order that the file system chose",
    ]


@pytest.mark.parametrize("arguments", [["--select", "HL999"], ["--level", "loud"]])
def test_a_wrong_code_or_level_is_told_with_the_valid_ones(arguments: list[str], folder: Path):
    ran = subprocess.run([COMMAND, "lint", *arguments], capture_output=True, check=False, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"holdfast: {arguments[0]}: there is no ")
    assert "  there are " in ran.stderr


def test_torch_is_not_imported(folder: Path):
    program = "import sys; from holdfast.cli import app; app(['lint'], standalone_mode=False)"
    program += "; print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True)
    assert ran.stdout.splitlines()[-1] == "False"


def test_rules_are_listed_with_their_levels():
    lines = run("--rules").stdout.splitlines()
    assert [line.split()[0] for line in lines] == codes()
    assert "HL101 W a handle is opened in the data set's `__init__`" in lines
    levels = {rule["code"]: rule["level"] for rule in json.loads(run("--rules", "--json").stdout)}
    assert (levels["HL103"], levels["HL101"], levels["HL206"]) == ("E", "W", "I")


def test_the_page_for_users_has_all_rules_at_their_levels():
    rows = [f"| {rule.code} | {rule.level.value} | {rule.title} |" for rule in all_rules().values()]
    table = "| code | level | what is wrong |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    assert table in (ROOT / "docs" / "lint.md").read_text(), f"the table should be\n{table}"


# flake8, pre-commit


@pytest.fixture
def flake8(folder: Path):
    """flake8, which finds holdfast's entry point as it is installed."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "flake8", "--isolated", "--jobs", "1", *arguments, "train.py"]
        return subprocess.run(command, capture_output=True, check=False, text=True, cwd=folder)

    return run


def test_flake8_runs_the_rules(flake8):
    ran = flake8()
    ours = [line.partition(" ")[0] for line in ran.stdout.splitlines() if " HL" in line]
    assert ours == ["train.py:6:22:", "train.py:8:60:"]
    assert "HL205 Images has its samples in the order of os.listdir" in ran.stdout
    assert (ran.returncode, ran.stderr) == (1, "")


def test_flake8_heeds_its_own_noqa_and_ours(flake8, folder: Path):
    text = BAD.replace("listdir(folder)", "listdir(folder)  # noqa: HL205")
    (folder / "train.py").write_text(text.replace("batch)\n", "batch)  # holdfast: noqa\n"))
    assert " HL" not in flake8().stdout


def test_flake8_leaves_notes_out_unless_they_are_asked_for(flake8, folder: Path):
    sample = "    def __getitem__(self, index):\n        return hash(index)\n"
    (folder / "train.py").write_text(BAD.replace("\nloader", f"{sample}\nloader"))
    assert "HL206" not in flake8().stdout
    assert "HL206" in flake8("--extend-select", "HL206").stdout


def test_the_hook_for_pre_commit_names_the_command():
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text()
    assert "- id: holdfast-lint\n" in hook
    assert "  entry: holdfast lint\n" in hook
