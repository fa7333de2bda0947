"""Under spawn and forkserver every worker has a private copy of the data set.

It is pickled once for each of them and sent through a pipe: time and memory grow with the number of workers.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import numpy
from torch.utils.data import DataLoader


def own_memory():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) // 1024 for line in file if line.startswith("Anonymous:"))


class Table:
    def __init__(self):
        self.values = numpy.ones(300 << 17)  # 300 MB

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return int(self.values.sum()) >> 17, own_memory()


if __name__ == "__main__":
    loader = DataLoader(Table(), num_workers=2, multiprocessing_context="forkserver")
    for total, megabytes in loader:
        print(int(total), int(megabytes))
"""


def on_torch(ran: Ran) -> str:
    own = max(_own(ran))
    ran.must(own > 300, "more than 300 MB for each worker")
    return f"each worker has {own} MB for itself, for a table of 300 MB"


def on_holdfast(ran: Ran) -> str:
    ran.is_silent()
    own = max(_own(ran))
    ran.must(own < 200, "less than 200 MB for each worker")
    return f"shipped once: each worker has {own} MB for itself, torch included"


def _own(ran: Ran) -> list[int]:
    ran.ends_well()
    rows = [line.split() for line in ran.lines]
    ran.must([total for total, _ in rows] == ["300"] * 4, "four sums of 300")
    return [int(megabytes) for _, megabytes in rows]


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, patience=30)
