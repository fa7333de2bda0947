"""A random generator in the data set gives the same numbers in all workers and every epoch.

Each worker has a copy of it in the same state, and the next epoch's workers have one again.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import numpy
from torch.utils.data import DataLoader


class Crops:
    def __init__(self):
        self.random = numpy.random.default_rng(0)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.random.integers(1_000_000)


loader = DataLoader(Crops(), batch_size=4, num_workers=2)
for epoch in range(2):
    print(*[number for batch in loader for number in batch.tolist()])
"""


def on_torch(ran: Ran) -> str:
    ran.ends_well()
    ran.must(not ran.err, "that nobody says so")
    first, second = (line.split() for line in ran.lines)
    ran.must(first == second and first[:4] == first[4:], "repeated numbers")
    return "4 different numbers where 16 are expected, no word"


def on_holdfast(ran: Ran) -> str:
    ran.ends_well()
    ran.says("HF404")
    return ran.says("dataset.random")


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
