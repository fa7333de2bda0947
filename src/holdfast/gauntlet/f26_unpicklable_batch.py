"""A batch that cannot be pickled is waited for without end.

A thread of the worker pickles what is sent. What it raises is printed, or not, and the trainer waits for a batch that
will never come.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import threading

from torch.utils.data import DataLoader


class Samples:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return {"index": index, "meta": {"lock": threading.Lock() if index == 5 else None}}


print("loading")
for batch in DataLoader(Samples(), batch_size=2, num_workers=2, collate_fn=list):
    print([sample["index"] for sample in batch])
"""


def on_torch(ran: Ran) -> str:
    return ran.hangs()


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.lines == ["loading", "[0, 1]", "[2, 3]"], "two batches, then the error")
    ran.must(ran.status == 1, "an error")
    return ran.says("batch[1]['meta']['lock'] (_thread.lock) cannot be sent", "HF302")


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
