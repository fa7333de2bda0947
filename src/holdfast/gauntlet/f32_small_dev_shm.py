"""In a container with 64 MB of /dev/shm, workers die of a bus error or find no space left.

torch hands batches over in files of /dev/shm, and Docker gives a container 64 MB of that unless told otherwise. Older
versions of torch write beyond the end, which is a bus error; newer ones ask for the space before. It depends on which
thread of the worker finds out whether the trainer is told, or waits for ever.
"""

from __future__ import annotations

from .row import Ran, Room, Row

PROGRAM = """
import torch
from torch.utils.data import DataLoader


class Images:
    def __len__(self):
        return 192

    def __getitem__(self, index):
        return torch.full((3, 224, 224), float(index)), index


total = 0
for images, labels in DataLoader(Images(), batch_size=64, num_workers=2):  # 38 MB a batch
    assert torch.equal(images[:, 1, 2, 3], labels.float())
    total += len(labels)
print(total)
"""


def on_torch(ran: Ran) -> str:
    told = "Bus error", "bus error", "insufficient shared memory", "exited unexpectedly", "No space left"
    return ran.fails_or_hangs(*told)


def on_holdfast(ran: Ran) -> str:
    ran.prints("192")
    ran.is_silent()
    return "works: batches do not go through /dev/shm"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, room=Room(shm=64 << 20))
