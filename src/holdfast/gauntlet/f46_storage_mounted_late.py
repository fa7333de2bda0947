"""The storage is not mounted yet: an epoch of no batches, no error.

A mount point without a mount is an empty folder, and a data set of nothing is trained on in no time.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os
import threading

from torch.utils.data import DataLoader


def mount():
    for index in range(20):
        open(f"data/{index:02}.jpg", "w").close()


os.mkdir("data")
threading.Timer(1.0, mount).start()  # the storage comes a little later
files = sorted(os.listdir("data"))
print(len(list(DataLoader(files, batch_size=4))), "batches")
"""


def on_torch(ran: Ran) -> str:
    ran.prints("0 batches")
    return "0 batches, no error"


def on_holdfast(ran: Ran) -> str:
    ran.prints("5 batches")
    return "5 batches: wait_for waits until something is there"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="late",
    changes={
        "from torch.utils.data import DataLoader\n": "from holdfast import DataLoader, wait_for\n",
        'files = sorted(os.listdir("data"))': 'files = sorted(os.listdir(wait_for("data", timeout=20)))',
    },
)
