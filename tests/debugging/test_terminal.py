"""At a real terminal: keys, signals, and the end of the program."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from terminal import CTRL_C, CTRL_D, Terminal

PROMPT = "(Pdb, worker 1) "
PROGRAM = """
import torch
from holdfast import DataLoader

class Halting:
    def __len__(self): return 16
    def __getitem__(self, index):
        if index in (5, 13):
            breakpoint()
        return index

if __name__ == "__main__":
    loader = DataLoader(Halting(), batch_size=4, num_workers=2)
    print([index for batch in loader for index in batch.tolist()])
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(PROGRAM, tmp_path)
    yield made
    made.close()


@pytest.mark.slow
def test_keys_do_what_they_do_in_pdb(terminal):
    assert terminal.sees("fetching sample 5 of batch 1"), terminal.shown
    assert terminal.sees(PROMPT)
    terminal.press("p index * 111\n")
    assert terminal.sees("555")
    assert terminal.sees(PROMPT)
    terminal.press_until(CTRL_C, "--KeyboardInterrupt--")
    assert terminal.sees(PROMPT)
    terminal.press(CTRL_D)
    assert terminal.sees("fetching sample 13 of batch 3"), terminal.shown
    assert terminal.sees(PROMPT)
    terminal.press("c\n")
    assert terminal.sees(f"{list(range(16))}"), terminal.shown
    assert terminal.ends() == 0


def test_a_trainer_killed_at_the_prompt_takes_its_workers_along(terminal):
    assert terminal.sees(PROMPT), terminal.shown
    workers = psutil.Process(terminal.process.pid).children(recursive=True)
    assert len(workers) >= 2
    os.kill(terminal.process.pid, signal.SIGKILL)
    terminal.process.wait()
    deadline = time.monotonic() + 10
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.01)  # they are not our children: no descriptor tells of their end
    assert not [worker for worker in workers if alive(worker)]


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
