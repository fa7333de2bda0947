"""Batches that were ready are lost when their worker is gone: connection refused, no such file.

A tensor arrives as the address of a socket, at which its worker hands out the descriptor of the memory. Nobody
answers there any more.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os
import signal
import time

import torch
from torch.utils.data import DataLoader


class Blocks:
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.full((1 << 16,), float(index))


batches = iter(DataLoader(Blocks(), num_workers=2))
print(int(next(batches).mean()))
pids = [worker.pid for worker in batches._workers]
time.sleep(1)  # the first step of the training: the other batches are ready meanwhile
for pid in pids:
    os.kill(pid, signal.SIGKILL)
print([int(batch.mean()) for batch in batches])
"""


def on_torch(ran: Ran) -> str:
    return ran.fails(
        "ConnectionResetError", "ConnectionRefusedError", "FileNotFoundError", "exited unexpectedly", "killed by signal"
    )


def on_holdfast(ran: Ran) -> str:
    ran.prints("0", "[1, 2, 3]")
    return "all of them: what was announced outlives its worker"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
