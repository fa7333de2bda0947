"""A `StopIteration` in `__getitem__` ends the epoch early, and silently.

It reaches the loop over the loader, which takes it for the end. One `next()` on an iterator that has no more is
enough.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.utils.data import DataLoader


class Frames:
    def __len__(self):
        return 100

    def __getitem__(self, index):
        frames = iter(range(index, 7 if index == 6 else index + 1))
        next(frames)
        return next(frames) if index == 6 else index


batches = 0
for batch in DataLoader(Frames(), batch_size=4, num_workers=2):
    batches += 1
    print(batches)
"""


def on_torch(ran: Ran) -> str:
    ran.ends_well()
    ran.must(ran.lines == ["1"], "a silent end after the first batch")
    return "1 of 25 batches, no error"


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.lines == ["1"], "one batch, then the error")
    ran.must(ran.status == 1, "an error")
    return ran.says("dataset[6] raised StopIteration")


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
