"""`dataset.set_epoch` in the trainer never reaches persistent workers.

They have the copy of the data set that was made when they were started.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.utils.data import DataLoader


class Crops:
    epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return 100 * self.epoch + index


dataset = Crops()
loader = DataLoader(dataset, num_workers=2, persistent_workers=True)
for epoch in range(3):
    dataset.set_epoch(epoch)
    print([int(batch) for batch in loader])
"""


def on_torch(ran: Ran) -> str:
    ran.prints(*["[0, 1, 2, 3]"] * 3)
    return "every epoch is epoch 0, no word"


def on_holdfast(ran: Ran) -> str:
    ran.prints("[0, 1, 2, 3]", "[100, 101, 102, 103]", "[200, 201, 202, 203]")
    ran.is_silent()
    return "the epoch travels with the work"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
