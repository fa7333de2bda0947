"""A decoder crashes: DataLoader worker exited unexpectedly, and nobody says at which file.

A segmentation fault in C code ends the process at once. torch knows the pid, which is no help afterwards.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import ctypes

from torch.utils.data import DataLoader


def decode(index):
    if index == 17:
        ctypes.string_at(0)  # what a C library does with a rotten file
    return index


class Images:
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return decode(index)


for batch in DataLoader(Images(), batch_size=4, num_workers=2):
    print(*batch.tolist())
"""


def on_torch(ran: Ran) -> str:
    error = ran.fails("exited unexpectedly", "killed by signal", "EOFError", "ConnectionResetError")
    ran.must("17" not in error, "an error without the sample")
    return error


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.lines == ["0 1 2 3", "4 5 6 7", "8 9 10 11", "12 13 14 15"], "four batches, then the error")
    ran.must(ran.status == 1, "an error")
    ran.says("HF201", "tried 2 times", "line 8 in decode")
    return ran.says("was killed by SIGSEGV while it loaded sample 17 of batch 4")


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
