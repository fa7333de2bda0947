"""The examples of sharing, run as a user does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name: str, *args: str) -> list[str]:
    done = subprocess.run([sys.executable, EXAMPLES / name, *args], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.slow
def test_four_ways_to_sum_a_tensor_give_one_number():
    assert [line.split()[-1] for line in run("sums.py")] == ["499999500000.0"] * 4


@pytest.mark.slow
def test_workers_that_label_images_have_the_weights_once():
    first, *workers, last = run("inference.py", "2")
    assert first == "800 images are labelled; the weights are 128 MB"
    assert len(workers) == 2
    shared = int(re.fullmatch(r"shared by all 2 workers: (\d+) MB", last)[1])
    assert 64 < shared <= 1.1 * 128
