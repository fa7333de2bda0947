"""A model cannot be loaded in the ranks, and the program ends well.

`torch.load` refuses whole models since torch 2.6. What a `Process` raises is printed, and its status is looked at by
nobody who does not ask.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import torch
from torch.multiprocessing import Process
from torch.utils.data import DataLoader


def label(rank):
    model = torch.load("model.pt")
    for batch in DataLoader(torch.ones(8, 4), batch_size=4):
        print(rank, model(batch).argmax(1).tolist())


if __name__ == "__main__":
    torch.save(torch.nn.Linear(4, 3), "model.pt")
    ranks = [Process(target=label, args=[rank]) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    print("all images are labelled")
"""
RANKS = PROGRAM[PROGRAM.index("    ranks =") : PROGRAM.index('    print("all')]
IMPORTS = "from torch.multiprocessing import Process\nfrom torch.utils.data import DataLoader\n"


def on_torch(ran: Ran) -> str:
    ran.prints("all images are labelled")
    ran.says("Weights only load failed")
    return "status 0, and no image has a label"


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.status == 1 and not ran.lines, "an error")
    return ran.says("raised UnpicklingError: Weights only load failed", "program.py", "HF801")


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="the error",
    changes={IMPORTS: "from holdfast import DataLoader, spawn\n", RANKS: "    spawn(label, nprocs=2)\n"},
    patience=20,
)
