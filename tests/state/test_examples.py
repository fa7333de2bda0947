"""The examples of resuming, run as a user does: killed, started again, and compared with a run that was left alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from torchruns import RESTARTS, ranks, run, started

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STEP = re.compile(r"epoch (\d+) step (\d+) (?:seen (\d+) )?loss (\S+)")


def steps(lines: list[str]) -> dict[int, tuple[str, ...]]:
    """What was said of each step, by its number; of one that was done again, the last word."""
    found = {}
    for line in lines:
        told = STEP.fullmatch(line)
        assert told, line
        epoch, step, seen, loss = told.groups()
        found[int(step)] = (epoch, seen, loss)
    return found


def first(lines: list[str]) -> int:
    return min(steps(lines))


@pytest.mark.slow  # tests/faults/test_killed_trainers.py does the same with smaller programs
def test_a_killed_run_goes_on_with_the_same_losses(tmp_path):
    """... to the last bit, dropout and augmentation included, and with other numbers of workers."""
    example = EXAMPLES / "resume.py"
    whole = steps(run(example, tmp_path / "whole", "3", NUM_WORKERS="0"))
    said = []
    for workers, step in (("2", 15), ("0", 75)):  # of 192: in the first epoch, and in the second
        with started(example, tmp_path / "killed", "3", NUM_WORKERS=workers) as program:
            said += program.until(f"step {step} ")
            program.kill()
            said += program.rest()
    rest = run(example, tmp_path / "killed", "3", NUM_WORKERS="2")
    assert first(rest) > 70, "it did not go on, but began anew"
    assert steps([*said, *rest]) == whole
    assert list(whole) == list(range(1, 3 * 64 + 1))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ranks_that_were_killed_go_on_with_the_same_losses(tmp_path):
    """torchrun starts them again; then all are stopped, and others, one more of them, do the rest: each sample once."""
    example = EXAMPLES / "resume_torchrun.py"
    whole = steps(run(*ranks(2, example, tmp_path / "whole", "2"), NUM_WORKERS="0"))
    with started(*ranks(2, example, tmp_path / "killed", "3", restarts=1), **RESTARTS) as program:
        said = program.until("step 15 ")
        program.rank(1).kill()
        said += program.until("step 128 ")  # the last one of the second epoch
    assert len(steps(said)) < len(said), "nothing was done again: were they started again at all?"
    assert steps(said) == whole
    rest = steps(run(*ranks(3, example, tmp_path / "killed", "3"), NUM_WORKERS="0"))
    assert min(rest) > 120
    assert rest[max(rest)][1] == str(3 * 3199)
