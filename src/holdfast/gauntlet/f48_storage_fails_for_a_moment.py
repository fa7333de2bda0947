"""The storage fails for a moment, and the run is over.

Network file systems and object stores refuse a read now and then; the same read works a second later.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os

from torch.utils.data import DataLoader


class Images:
    def __len__(self):
        return 40

    def __getitem__(self, index):
        if index == 17 and len(os.listdir("tries")) < 2:
            open(f"tries/{len(os.listdir('tries'))}", "w").close()
            raise OSError(5, "Input/output error")
        return index


os.mkdir("tries")
for batch in DataLoader(Images(), batch_size=4, num_workers=2):
    print(*batch.tolist())
"""


BATCHES = [" ".join(str(index) for index in range(first, first + 4)) for first in range(0, 40, 4)]


def on_torch(ran: Ran) -> str:
    return ran.fails("OSError")


def on_holdfast(ran: Ran) -> str:
    ran.prints(*BATCHES)
    return "all 10 batches, in order: the third attempt was good"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={
        "from torch.utils.data import DataLoader\n": "from holdfast import DataLoader, Retry\n",
        "num_workers=2)": "num_workers=2, on_error=Retry(3, on=OSError))",
    },
)
