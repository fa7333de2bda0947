"""`next(iter(loader))` in the training loop starts all workers anew for every step.

It reads like "the next batch", and it means: begin an epoch, take one batch, end the epoch.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os
import time

from torch.utils.data import DataLoader


class Images:
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return os.getpid()


loader = DataLoader(Images(), batch_size=4, num_workers=2)
next(iter(loader))
workers, began = set(), time.monotonic()
for step in range(10):
    batch = next(iter(loader))
    workers.update(batch.tolist())
print(len(workers), f"{(time.monotonic() - began) * 100:.0f}")
"""


def on_torch(ran: Ran) -> str:
    workers, milliseconds = _counted(ran)
    ran.must(workers == 10 and not ran.err, "a new worker for every step, and that nobody says so")
    return f"new workers for each of 10 steps, {milliseconds} ms a step, no word"


def on_holdfast(ran: Ran) -> str:
    workers, milliseconds = _counted(ran)
    ran.must(workers <= 4, "workers that are used again")
    ran.must(ran.err.count("HF406") == 1, "one warning")
    return f"the workers are used again, {milliseconds} ms a step, and a warning says how to do it"


def _counted(ran: Ran) -> tuple[int, int]:
    ran.ends_well()
    workers, milliseconds = ran.lines[-1].split()
    return int(workers), int(milliseconds)


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
