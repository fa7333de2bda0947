"""The folder of the data set is empty: an epoch of no batches, no error.

A path with a mistake, a storage that is not mounted: the loop over nothing ends at once, and training was successful.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os

from torch.utils.data import DataLoader


class Images:
    def __init__(self, root):
        self.root, self.files = root, sorted(os.listdir(root))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return self.files[index]


os.mkdir("data")
print(len(list(DataLoader(Images("data"), num_workers=2))), "batches")
"""


def on_torch(ran: Ran) -> str:
    ran.prints("0 batches")
    return "0 batches, no error"


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.status == 1 and not ran.out, "an error")
    ran.says("data is empty", "allow_empty=True")
    return ran.says("HF401")


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, variant="empty")
