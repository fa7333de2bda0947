"""A script without a main guard starts itself again in every worker.

Under spawn (the only way on Windows, the default on macOS) and forkserver (the default on Linux from Python 3.14) a
worker imports the script to find its classes, and so runs all of it, up to the line that starts workers.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.utils.data import DataLoader


class Squares:
    def __len__(self):
        return 20

    def __getitem__(self, index):
        return index * index


print("the script runs")
loader = DataLoader(Squares(), num_workers=2, multiprocessing_context="forkserver")
print(sum(int(batch) for batch in loader))
"""


def on_torch(ran: Ran) -> str:
    ran.must(ran.lines.count("the script runs") > 1, "the script to run more than once")
    return ran.fails("bootstrapping phase", "exited unexpectedly", "BrokenPipeError")


def on_holdfast(ran: Ran) -> str:
    ran.prints("the script runs", "2470")
    ran.is_silent()
    return "works; the script runs once"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, patience=20)
