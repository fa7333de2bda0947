"""The trainer is killed, and its busy workers live on.

They notice it only when they next look at their queue. Until then they hold their memory, and a GPU job that is
started again finds none.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os
import signal
import time

from torch.utils.data import DataLoader


class Videos:
    def __len__(self):
        return 10

    def __getitem__(self, index):
        if index > 1:
            open(f"busy {index}", "w").close()
            time.sleep(60)  # a long computation
        return index


batches = iter(DataLoader(Videos(), num_workers=2))
next(batches), next(batches)
while sum(name.startswith("busy") for name in os.listdir()) < 2:
    time.sleep(0.01)
print("training")
os.kill(os.getpid(), signal.SIGKILL)
"""


def on_torch(ran: Ran) -> str:
    _was_killed(ran)
    ran.must(len(ran.outlived) == 2, "two workers that live on")
    return "after a second both workers are still there"


def on_holdfast(ran: Ran) -> str:
    _was_killed(ran)
    ran.must(not ran.outlived, "that nobody is left")
    return "all are gone within a second"


def _was_killed(ran: Ran) -> None:
    ran.must(ran.status == -9 and ran.lines == ["training"], "a trainer that is killed while it trains")


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
