"""A torch.Generator in the data set ends the workers as they start.

Its state travels as a temporary tensor in shared memory, which a process that is just starting cannot open.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import torch
from torch.utils.data import DataLoader


class Crops:
    def __init__(self):
        self.generator = torch.Generator().manual_seed(5)
        self.column = torch.arange(40).reshape(8, 5)[:, 2]

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.column[index] + self.generator.initial_seed()


if __name__ == "__main__":
    loader = DataLoader(Crops(), num_workers=2, multiprocessing_context="forkserver")
    print([int(batch) for batch in loader])
"""


def on_torch(ran: Ran) -> str:
    return ran.fails("exited unexpectedly", "unable to resize", "Invalid argument")


def on_holdfast(ran: Ran) -> str:
    ran.prints(str([7 + 5 * index for index in range(8)]))
    ran.is_silent()
    return "works"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, patience=20)
