"""The loop never starts: OpenMP ran in the trainer before the workers were forked.

The threads of an OpenMP pool are not there after a fork, but the pool believes that they are, and waits for them.
OpenCV, scikit-learn and torch itself use such pools.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import torch
from torch.utils.data import DataLoader


class Sums:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        torch.set_num_threads(2)
        return torch.full((1 << 20,), float(index)).sum()


torch.set_num_threads(2)
torch.ones(1 << 20).add_(1).sum()
print("loading")
print([int(batch) >> 20 for batch in DataLoader(Sums(), num_workers=2)])
"""


def on_torch(ran: Ran) -> str:
    return ran.hangs()


def on_holdfast(ran: Ran) -> str:
    ran.prints("loading", str(list(range(8))))
    ran.is_silent()
    return "works: workers are no forks of the trainer"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, variant="OpenMP")
