"""At its end a program under ``holdfast run`` says what its loaders did, however it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest
from adoption_runs import HOLDFAST, run

from holdfast.adoption import remarks
from holdfast.adoption.summary import conclude
from holdfast.adoption.text import lines

PROGRAM = """
import os, signal, time, torch
from torch.utils.data import DataLoader, Dataset

class Mixed(Dataset):
    def __len__(self): return 64
    def __getitem__(self, index):
        if index == 3: raise ValueError("no image")
        if index == 9 and not os.path.exists("died"):
            open("died", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.tensor(index)

def validate():
    for _ in DataLoader(Mixed(), batch_size=8): pass

train = DataLoader(Mixed(), batch_size=4, num_workers=2)
unused = DataLoader(Mixed())
for epoch in range(2):
    for batch in train: pass
    validate()
print("ready", flush=True)
time.sleep(60)
"""


def test_it_tells_of_each_loader_and_each_fault(tmp_path: Path):
    """Also after Ctrl-C, by which the program ends as it does with Python; and the report has the same facts."""
    (tmp_path / "train.py").write_text(PROGRAM)
    options = "--on-error", "skip", "--fault-log", "log.jsonl", "--report", "out/report.json"
    command = [*HOLDFAST, "run", *options, "train.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    trace, summary = told.split("\nKeyboardInterrupt\n")
    assert "holdfast/" not in trace[trace.index("Traceback") :]
    head, columns, train, validation, empty, ledger, *faults, log = summary.splitlines()
    assert re.fullmatch(r"holdfast: 2 loaders, and \d+% of \S+ s spent waiting for data", head)
    assert re.split(r"\s{2,}", columns.strip())[:3] == ["loader", "data set", "epochs"]
    assert re.fullmatch(r"  train.py:17  Mixed +2 +32 .* [1-]  2 exception, 1 death", train)
    assert re.fullmatch(r"  train.py:15  Mixed +2 +16 .* -  2 exception", validation)
    assert (empty, ledger.split()) == ("", ["epoch", "batch", "sample", "where", "error", "action"])
    assert sum("ValueError: no image" in line for line in faults) == 4
    assert log == f"  fault log  {tmp_path / 'log.jsonl'}"
    _agrees(json.loads((tmp_path / "out" / "report.json").read_text()))


def _agrees(report: dict) -> None:
    (process,) = report["processes"]
    train, unused, validation = sorted(process["loaders"], key=lambda loader: loader["place"].replace("15", "99"))
    assert [train["place"], train["made"], train["samples"]] == ["train.py:17", 1, 128]
    assert [unused["place"], unused["epochs"], unused["batches"]] == ["train.py:18", 0, 0]
    assert [validation["made"], validation["epochs"], validation["samples"]] == [2, 2, 128]
    assert 0 < train["waited"] <= train["seconds"] <= process["seconds"] == report["seconds"]
    assert {one["error"]["type"] for one in train["faults"]} == {"ValueError", "holdfast.errors.workers.WorkerDied"}


RANKS = """
import os, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
import torch

dist.init_process_group("gloo")
data = TensorDataset(torch.arange(8 * dist.get_world_size()))
loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data), num_workers=0)
assert loader.max_restarts == 5
for batch in loader: pass
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_ranks_of_a_launcher_are_in_one_summary(tmp_path: Path):
    (tmp_path / "train.py").write_text(RANKS)
    options = "--no-warm", "--max-restarts", "5", "--report", "report.json"
    ran = run(tmp_path, *options, "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py")
    assert ran.returncode == 0, ran.stderr
    rows = re.findall(r"rank (\d) train.py:8  TensorDataset +1 +2 ", ran.stderr)
    assert sorted(rows) == ["0", "1"]
    assert ran.stderr.count("holdfast: ") == 1
    assert len(json.loads((tmp_path / "report.json").read_text())["processes"]) == 2


@pytest.mark.parametrize(
    ("epochs", "line"), [([], "made no DataLoader"), ([0, 0], "made 2 loaders and used none of them")]
)
def test_one_line_when_there_is_nothing_to_tell(epochs: list[int], line: str):
    loaders = [{"epochs": each} for each in epochs]
    assert lines({"seconds": 1.0, "processes": [{"loaders": loaders}]}, {}) == [f"holdfast: the program {line}"]


def test_a_long_ledger_is_cut_and_counted():
    fault = {"row": {"epoch": "0", "error": "ValueError"}}
    loader = {"place": "train.py:3", "dataset": "Images", "epochs": 1, "batches": 9, "samples": 90, "restarts": 0}
    loader |= {"seconds": 2.0, "waited": 1.0, "faults": [fault] * 20}
    loader["counts"] = [{"kind": "exception", "action": "skipped", "count": 1234}]
    told = lines({"seconds": 4.0, "processes": [{"pid": 1, "rank": None, "seconds": 4.0, "loaders": [loader]}]}, {})
    assert told[0] == "holdfast: 1 loader, and 25% of 4.0 s spent waiting for data"
    assert told[2].split()[2:] == ["1", "9", "45", "1.0", "s", "25%", "-", "1234", "exception"]
    assert len(told) == 4 + 1 + 20 + 1
    assert told[-1] == "  … and 1214 more"


def test_a_report_that_cannot_be_written_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder, report = str(tmp_path / "none"), str(tmp_path)
    conclude({"folder": folder, "quiet": True, "report": report, "options": {}, "script": None}, 1.0)
    assert capsys.readouterr().err == f"holdfast: the report cannot be written to {tmp_path}: Is a directory\n"


def test_it_has_what_lint_says_of_the_program_and_nothing_that_our_loaders_cure(tmp_path: Path):
    (tmp_path / "train.py").write_text(
        "from torch.utils.data import DataLoader, Dataset\n"
        "COUNT = 0\n"
        "class Counted(Dataset):\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, index):\n"
        "        global COUNT\n"
        "        COUNT += 1\n"
        "        return index\n"
        "for batch in DataLoader(Counted(), num_workers=1, collate_fn=lambda batch: batch): pass\n"
    )
    ran = run(tmp_path, "--report", "report.json", "train.py")
    remarks = json.loads((tmp_path / "report.json").read_text())["remarks"]
    assert [(one["code"], one["line"]) for one in remarks] == [("HL401", 7)]
    assert "\n  lint  train.py:7:9 HL401 " in ran.stderr


STREAM = """
from torch.utils.data import DataLoader, IterableDataset
class Whole(IterableDataset):
    def __iter__(self): yield from range(8)
loader = DataLoader(Whole(), num_workers=2)
"""


def test_what_an_option_of_the_run_has_cured_is_not_said(tmp_path: Path):
    script = tmp_path / "stream.py"
    script.write_text(STREAM)
    assert [one["code"] for one in remarks.on(str(script), {})] == ["HL301"]
    assert remarks.on(str(script), {"shard": "auto"}) == []
