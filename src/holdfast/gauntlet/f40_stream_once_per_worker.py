"""An iterable data set gives every item once per worker.

Each worker has the whole stream. It is up to the data set to find out which part is its own.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import torch
from torch.utils.data import DataLoader


class Lines(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield from range(24)


print(sorted(item for batch in DataLoader(Lines(), batch_size=4, num_workers=2) for item in batch.tolist()))
"""


def on_torch(ran: Ran) -> str:
    ran.prints(str(sorted([*range(24), *range(24)])))
    ran.must(not ran.err, "that nobody says so")
    return "48 items of 24, no word"


def on_holdfast(ran: Ran) -> str:
    ran.prints(str(list(range(24))))
    return 'each item once: shard="auto" splits the stream'


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="split",
    changes={"num_workers=2)": 'num_workers=2, shard="auto")'},
)
