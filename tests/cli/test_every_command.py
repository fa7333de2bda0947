"""What all commands have in common."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.cli.stdout import kept_clear

COMMAND = str(Path(sys.executable).parent / "holdfast")
COMMANDS = ["run", "doctor", "lint", "scan", "replay", "explain", "gauntlet", "env"]


def holdfast_command(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [COMMAND, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=100, env={**os.environ, **environ}
    )


def test_help_names_every_command_in_the_order_in_which_one_meets_them():
    told = holdfast_command("--help").stdout
    listed = told[told.index("Commands:") :].splitlines()[1:]
    assert [line.split()[0] for line in listed] == COMMANDS
    assert all(line.endswith(".") for line in listed)  # none is cut


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_says_what_its_exit_code_means(command: str):
    ran = holdfast_command(command, "--help", COLUMNS="200")
    assert ran.returncode == 0
    assert "Exit code" in ran.stdout


def test_help_needs_neither_torch_nor_rich():
    program = (
        "import sys\nfrom holdfast.cli import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        "print([name for name in ('torch', 'numpy', 'rich', 'psutil') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_it_knows_its_version_and_runs_as_a_module():
    assert holdfast_command("--version").stdout == f"holdfast {holdfast.__version__}\n"
    ran = subprocess.run([sys.executable, "-m", "holdfast", "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"holdfast {holdfast.__version__}\n"


def test_a_character_that_the_output_does_not_have_is_no_traceback(tmp_path: Path):
    (tmp_path / "grösse.py").write_text("def (", encoding="utf-8")
    ran = holdfast_command("lint", str(tmp_path), PYTHONIOENCODING="ascii")
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "gr?sse.py:1:5 HL001" in ran.stdout
    told = json.loads(holdfast_command("lint", "--json", str(tmp_path), PYTHONIOENCODING="ascii").stdout)
    assert told["findings"][0]["path"].endswith("grösse.py")


def test_a_shell_completes_commands_and_options():
    asked = {"_HOLDFAST_COMPLETE": "complete_bash", "COMP_CWORD": "1", "COMP_WORDS": "holdfast l"}
    assert holdfast_command(**asked).stdout.split() == ["lint"]
    asked = {"_HOLDFAST_COMPLETE": "complete_bash", "COMP_CWORD": "2", "COMP_WORDS": "holdfast doctor --bud"}
    assert holdfast_command(**asked).stdout.split() == ["--budget"]


@pytest.mark.parametrize("command", ["run", "doctor", "scan", "replay", "lint"])
def test_a_target_that_is_not_there_is_told_in_a_line_and_not_by_a_traceback(command: str):
    ran = holdfast_command(command, "nowhere.py", *(["0"] if command == "replay" else []))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("holdfast: ")
    assert "nowhere.py" in ran.stderr.splitlines()[0]
    assert len(ran.stderr.splitlines()) <= 2


def test_code_of_the_users_may_run_where_standard_output_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with kept_clear():
        print("to nobody")
