"""``holdfast doctor``, as a user runs it: text, JSON, exit codes, and no traceback for a mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import defects
import pytest

from holdfast.audit.finding import Severity
from holdfast.doctor.examination import examine, merged
from holdfast.doctor.symptom import Symptom
from holdfast.targets.target import Target

PROGRAM = """
import sys
import numpy
import torch
from torch.utils.data import DataLoader, Dataset

print("imported")

class Healthy(Dataset):
    def __len__(self): return 64
    def __getitem__(self, index):
        print("loading")
        return torch.rand(3) + index

class Draws(Healthy):
    def __init__(self): self.rng = numpy.random.default_rng(0)
    def __getitem__(self, index): return index + self.rng.random()

def healthy(): return DataLoader(Healthy(), batch_size=4)
def fails(): raise ValueError("no such split")

if __name__ == "__main__":
    size = int(sys.argv[1])
    for batch in DataLoader(Draws(), batch_size=size, num_workers=2):
        raise SystemExit("reached the loop")
"""
OF_THE_MACHINE = {"HD12", "HD13", "HD14", "HD15", "HD21", "HD22", "HD23", "HD24"}  # not the data set's


@dataclass
class Ran:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def doctor(tmp_path: Path):
    (tmp_path / "train.py").write_text(PROGRAM)

    def run(*arguments: str) -> Ran:
        command = [sys.executable, "-c", "from holdfast.cli import main; main()", "doctor", *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=100, check=False)
        assert "Traceback" not in ran.stderr
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    return run


def test_a_healthy_loader_is_healthy_and_json_is_alone_on_stdout(doctor):
    found = doctor("train.py:healthy", "--json", "--workers", "0,1", "--budget", "20s").json
    symptoms = [symptom for symptom in found["symptoms"] if symptom["check"] not in OF_THE_MACHINE]
    assert (symptoms, found["samples_compared"], found["dataset"]) == ([], 64, "Healthy")
    assert [step["workers"] for step in found["steps"]] == [0, 1]
    assert found["recommendation"]["workers"] in (0, 1)
    assert found["environment"]["cpu_budget"] > 0


def test_a_script_is_examined_where_its_loop_begins_and_what_it_draws_is_found(doctor):
    ran = doctor("train.py", "--budget", "20s", "--workers", "0,2", "--", "4")
    assert ran.status == 1
    head, *lines = ran.out.splitlines()
    assert head == "Draws (train.py): 64 samples compared"
    begin = next(place for place, line in enumerate(lines) if line.endswith("[HD08]"))
    assert lines[begin].startswith("error  dataset.rng (numpy.Generator)")
    assert [line.split()[0] for line in lines[begin + 1 : begin + 5]] == ["where", "seen", "fix", "more"]
    assert lines[begin + 4].strip() == "more  holdfast explain HD08"
    assert sum(line.endswith("[HD08]") for line in lines) == 1
    assert any(line.startswith("num_workers=") for line in lines)


def test_without_the_ramp_no_sample_is_loaded():
    loader = defects.in_batches(defects.OwnGenerator)
    found = examine(Target("it", loader.dataset, loader), ramps=False)
    assert (found.steps, found.compared, found.advice) == ((), 0, None)
    assert "dataset.rng" in [symptom.where for symptom in found.symptoms]
    assert found.unlooked


def test_a_generator_that_does_no_harm_is_only_noted():
    loader = defects.in_batches(defects.Healthy)
    found = examine(Target("it", loader.dataset, loader), 20, workers=[0])
    symptoms = [symptom for symptom in found.symptoms if symptom.check not in OF_THE_MACHINE]
    assert [(symptom.where, symptom.severity) for symptom in symptoms] == [("dataset.order", Severity.NOTE)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train.py:fails"], "holdfast: train.py:fails raised ValueError: no such split\n  at "),
        (["nowhere.py"], "holdfast: there is no file nowhere.py\n"),
        (["train.py:healthy", "--budget", "soon"], "'soon' is no duration"),
        (["train.py:healthy", "--workers", "many"], "'many' is no list of numbers"),
        ([], "give one: what is to be examined"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(doctor, arguments, said):
    ran = doctor(*arguments)
    assert (ran.status, ran.out.replace("imported\n", "")) == (2, "")
    assert said in ran.err


def test_what_was_seen_and_what_was_measured_is_one_symptom():
    seen = Symptom("HD08", Severity.WARNING, "dataset.rng would repeat", "dataset.rng", "a Generator", "seed it")
    measured = Symptom("HD08", Severity.ERROR, "dataset.rng repeats", "dataset.rng", "196 of 200 differ")
    other = Symptom("HD08", Severity.ERROR, "dataset.other repeats", "dataset.other")
    one, two = merged([seen, measured, other])
    assert (one.severity, one.what, one.fix) == (Severity.ERROR, "dataset.rng repeats", "seed it")
    assert one.evidence == "196 of 200 differ; a Generator"
    assert two is other
