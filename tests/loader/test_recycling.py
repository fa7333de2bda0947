"""Workers are replaced at the edge of a batch, and the stream does not show it. Faults go to a file as they happen."""

from __future__ import annotations

import json
import os

import pytest
import torch

from holdfast import DataLoader
from holdfast.testing import Faulty, RaisesAt

LIMIT = 200 << 20


class Leaky:
    """Keeps 8 MiB with every sample, and tells which process it was."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []

    def __len__(self):
        return 120

    def __getitem__(self, index):
        self.kept.append(os.urandom(1) * (8 << 20))
        return torch.tensor([index, os.getpid()])


def lives(**options: object) -> int:
    loader = DataLoader(Leaky(), batch_size=2, num_workers=1, **options)
    samples = torch.cat(list(loader))
    assert samples[:, 0].tolist() == list(range(120)), "each once, in order"
    assert (loader.restarts, len(loader.faults)) == (0, 0), "to be replaced is no fault"
    return len(samples[:, 1].unique())


def test_a_worker_that_has_grown_is_replaced():
    assert lives(max_worker_memory=LIMIT) >= 2
    assert lives(max_worker_memory=64 << 30) == 1


def test_a_worker_is_replaced_after_so_many_batches():
    assert lives(recycle_after=20) == 3


@pytest.mark.parametrize("option", ["recycle_after", "max_worker_memory"])
def test_a_limit_that_makes_no_sense_is_refused(option):
    with pytest.raises(ValueError, match=f"{option} should be None or a positive number, but got {option}=0"):
        DataLoader(range(4), **{option: 0})


def test_the_fault_log_has_a_line_for_each_fault(tmp_path):
    dataset = Faulty(range(8), RaisesAt(3, ValueError("rotten")), RaisesAt(5, OSError(5, "io")))
    loader = DataLoader(dataset, num_workers=1, on_error="skip", fault_log=tmp_path / "faults.jsonl")
    list(loader)
    lines = [json.loads(line) for line in (tmp_path / "faults.jsonl").read_text().splitlines()]
    noted = [(fault.index, fault.action) for fault in loader.faults]
    assert [(line["index"], line["action"]) for line in lines] == noted
    assert {line["index"] for line in lines} == {3, 5}  # one of them may have been tried in place of the other
