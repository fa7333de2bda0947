"""`next(iter(loader))` in the training loop starts all workers anew for every step.

It reads like "the next batch", and it means: begin an epoch, take one batch, end the epoch.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import time

from torch.utils.data import DataLoader


class Images:
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(0.01)
        return index


loader = DataLoader(Images(), batch_size=4, num_workers=2)
next(iter(loader))
began = time.monotonic()
for step in range(10):
    batch = next(iter(loader))
    assert len(batch) == 4
print(f"{(time.monotonic() - began) / 10 * 1000:.0f}")
"""


def on_torch(ran: Ran) -> str:
    ran.ends_well()
    ran.must(not ran.err, "that nobody says so")
    return f"{int(ran.lines[-1])} ms for each step, no word"


def on_holdfast(ran: Ran) -> str:
    ran.ends_well()
    ran.must(ran.err.count("HF406") == 1, "one warning")
    return f"{ran.lines[-1]} ms for each step, and a warning that says how to do it"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
