"""An iterable data set gives every item once per worker, and nobody notices.

Each worker has the whole stream. An epoch is as many times as long, and every item is trained on as many times.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import torch
from torch.utils.data import DataLoader


class Lines(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield from range(24)


print(len([item for batch in DataLoader(Lines(), batch_size=4, num_workers=2) for item in batch.tolist()]))
"""


def on_torch(ran: Ran) -> str:
    ran.prints("48")
    ran.must(not ran.err, "that nobody says so")
    return "48 items of 24, no word"


def on_holdfast(ran: Ran) -> str:
    ran.prints("48")
    ran.says("shard")
    return ran.says("HF403")


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, variant="noticed")
