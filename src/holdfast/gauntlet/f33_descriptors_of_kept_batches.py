"""Batches that are kept use up the file descriptors: too many open files, received 0 items of ancdata.

Each tensor that came from a worker holds a descriptor for as long as it lives.
"""

from __future__ import annotations

from .row import Ran, Room, Row

PROGRAM = """
import torch
from torch.utils.data import DataLoader


class Features:
    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        return torch.full((1024,), float(index))


print("loading")
kept = list(DataLoader(Features(), batch_size=None, num_workers=2))
assert all(float(row[0]) == float(row[-1]) == index for index, row in enumerate(kept))
print(len(kept))
"""


def on_torch(ran: Ran) -> str:
    if ran.status is None:
        return ran.hangs()
    return ran.fails("Too many open files", "ancdata")


def on_holdfast(ran: Ran) -> str:
    ran.prints("loading", "10000")
    ran.is_silent()
    return "10,000 batches are kept with 256 descriptors allowed"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, room=Room(descriptors=256))
