"""Programs as people copy them from forum answers, each with its usual defect: lint or the doctor names it, and under
``holdfast run`` the program works, or fails with that explanation."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.lint.checking import check_text
from holdfast.lint.rule import all_rules

FOLDER = Path(__file__).parent / "programs"
COMMAND = [sys.executable, "-m", "holdfast"]


@dataclass(frozen=True)
class Program:
    """``defect``: the code, and the line or the path that it is found at. ``ends``: the exit code under ``holdfast
    run``, and what is said: a result of the program's, or the explanation."""

    name: str
    defect: tuple[str, str]
    ends: tuple[int, tuple[str, ...]]

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.py"


PROGRAMS = [
    Program("dataset_per_rank", ("HL205", "os.listdir(folder)"), (0, ("sum over two epochs and ranks: 240", "HL205"))),
    Program("model_per_rank", ("HL606", "torch.load(path)"), (1, ("Weights only load failed", "HL606"))),
    Program("global_data", ("HL115", "DATA[index]"), (0, ("sum: 198.0",))),
    Program("data_in_init", ("HL603", "json.load(file)"), (0, ("sum of labels: 900000",))),
    Program("shared_memory_dataset", ("HL605", "shared_memory.SharedMemory("), (0, ("sum: 2016.0", "HL605"))),
    Program("image_folder", ("HL304", "return None, None"), (1, ("HF303", "dataset[5] gave None", "HL304"))),
    Program("transform_raises", ("F20", "dataset[7]"), (1, ("expected 3 channels, got 1", "Normalise", "sample 7"))),
    Program("global_counter", ("HL401", "COUNTER += 1"), (0, ("samples loaded: 0", "HL401", "COUNTER"))),
    Program("pool_mp_context", ("HL112", "mp_context="), (1, ("TypeError", "HL112"))),
    Program("forkserver_pool", ("HL111", "forkserver"), (0, ("[0, 1, 4, 9]", "HL111"))),
    Program("array_through_starmap", ("HL116", "totals"), (1, ("through inheritance", "HL116"))),
    Program("absolute_paths", ("HD11", "/mnt/training-data/speech"), (1, ("FileNotFoundError", "sample 0"))),
]
LONG = ("dataset_per_rank", "model_per_rank", "global_data", "data_in_init")  # to run: in `make torture` only


@pytest.mark.parametrize("program", [one for one in PROGRAMS if one.defect[0].startswith("HL")], ids=str)
def test_lint_names_the_defect_at_its_line(program: Program):
    code, written = program.defect
    text = program.path.read_text()
    lines = text.splitlines()
    found = [lines[one.line - 1] for one in check_text(text, program.name, all_rules().values()) if one.code == code]
    assert any(written in line for line in found), found


@pytest.mark.parametrize("program", [one for one in PROGRAMS if not one.defect[0].startswith("HL")], ids=str)
def test_the_doctor_names_the_defect_with_its_evidence(program: Program, tmp_path: Path):
    target = f"{program.path}:make_loader"
    ran = run("doctor", target, "--json", "--budget", "20s", cwd=tmp_path)
    assert ran.returncode == 1, ran.stderr
    code, evidence = program.defect
    symptoms = [one for one in json.loads(ran.stdout)["symptoms"] if one["check"] == code]
    assert any(evidence in json.dumps(one) for one in symptoms), ran.stdout


@pytest.mark.parametrize(
    "program", [pytest.param(one, marks=[pytest.mark.slow] * (one.name in LONG)) for one in PROGRAMS], ids=str
)
def test_run_makes_it_work_or_explains_it(program: Program, tmp_path: Path):
    ran = run("run", str(program.path), cwd=tmp_path)
    code, said = program.ends
    told = ran.stdout + ran.stderr
    assert ran.returncode == code, told
    assert [part for part in said if part not in told] == [], told


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=110)
