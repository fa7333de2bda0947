"""A worker waits for a lock that nobody releases: silence, for ever.

Two locks that are taken in different order, or one that is not given back after an exception.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import threading

from torch.utils.data import DataLoader


class Images:
    def __len__(self):
        return 12

    def __getitem__(self, index):
        cache = threading.Lock()
        with cache:
            if index == 5:
                cache.acquire()  # a second time
        return index


print("loading")
for batch in DataLoader(Images(), batch_size=2, num_workers=2):
    print(*batch.tolist())
"""


def on_torch(ran: Ran) -> str:
    return ran.hangs()


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.lines == ["loading", "0 1", "2 3"] and ran.status == 1, "two batches, then an error")
    ran.says("HF205", "lock", 'program.py", line 14 in __getitem__')
    return ran.says("made no progress for", "sample 5 of batch 2")


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="a lock",
    changes={"num_workers=2)": "num_workers=2, stall_timeout=1)"},
)
