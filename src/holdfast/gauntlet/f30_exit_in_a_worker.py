"""A library calls `exit(0)` in a worker: no word of which sample or why.

An exit status of 0 looks like a good end. Depending on who notices first the loop gets a late *exited unexpectedly*,
an empty EOFError, or a worker less.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os

from torch.utils.data import DataLoader


class Images:
    def __len__(self):
        return 40

    def __getitem__(self, index):
        if index == 17:
            os._exit(0)  # in C: exit(0)
        return index


for batch in DataLoader(Images(), batch_size=4, num_workers=2):
    print(*batch.tolist())
"""


def on_torch(ran: Ran) -> str:
    error = ran.fails("exited unexpectedly", "EOFError", "ConnectionResetError")
    ran.must("17" not in error, "an error without the sample")
    return error


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.lines == ["0 1 2 3", "4 5 6 7", "8 9 10 11", "12 13 14 15"], "four batches, then the error")
    ran.must(ran.status == 1, "an error")
    return ran.says("exited with status 0 while it loaded sample 17 of batch 4", "HF201")


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, variant="exit", patience=12)
