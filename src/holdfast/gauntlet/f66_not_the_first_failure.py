"""Of two ranks that fail, the one is reported that failed because of the other.

torch waits for processes, not for failures: a rank whose own thread takes a while to end is noticed last, and by then
its peers have failed for want of it. The error is theirs: a connection that was closed.
"""

from __future__ import annotations

from .f66_exit_in_a_rank import IMPORTS
from .row import Ran, Row

PROGRAM = """
import os
import threading
import time

from torch.multiprocessing import spawn
from torch.utils.data import DataLoader


def train(rank):
    if rank == 1:
        threading.Thread(target=time.sleep, args=[3]).start()  # a logger that sends what it has
        for batch in DataLoader(range(-50, 50), batch_size=10):
            open("begun", "w").close()
            raise ValueError(f"a label is {batch[0]}")
    while not os.path.exists("begun"):
        time.sleep(0.01)
    time.sleep(0.3)
    raise ConnectionError("connection closed by peer")  # what a collective says


if __name__ == "__main__":
    spawn(train, nprocs=2)
"""


def on_torch(ran: Ran) -> str:
    ran.must("a label is -50" not in ran.err, "no word of the cause")
    return ran.fails("ConnectionError: connection closed by peer")


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.status == 1, "an error")
    return ran.says("raised ValueError: a label is -50", "HF801")


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="who was first",
    changes={IMPORTS: "from holdfast import DataLoader, spawn\n"},
    patience=20,
)
