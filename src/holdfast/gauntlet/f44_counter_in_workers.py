"""A global that workers count in stays 0 in the trainer.

Each worker has its own.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.utils.data import DataLoader

missing = 0


class Images:
    def __len__(self):
        return 200

    def __getitem__(self, index):
        global missing
        if index % 3 == 0:
            missing += 1
        return index


for batch in DataLoader(Images(), batch_size=4, num_workers=2):
    pass
print(int(missing))
"""


def on_torch(ran: Ran) -> str:
    ran.prints("0")
    return "0, where 67 were counted"


def on_holdfast(ran: Ran) -> str:
    ran.prints("67")
    ran.is_silent()
    return "67: holdfast.Counter adds up over the workers"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={
        "from torch.utils.data import DataLoader\n": "from holdfast import Counter, DataLoader\n",
        "missing = 0\n": "missing = Counter()\n",
    },
)
