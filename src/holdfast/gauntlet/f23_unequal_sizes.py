"""Images of unequal size: stack expects each tensor to be equal size, or: trying to resize storage.

The error has positions in a batch that is gone, or not even those. Which files they were, nobody can say.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import torch
from torch.utils.data import DataLoader


class Images:
    def __init__(self):
        self.paths = [f"image-{index}.jpg" for index in range(40)]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.zeros(3, 32, 24 if index == 18 else 32), index


for images, labels in DataLoader(Images(), batch_size=4, num_workers=2):
    print(len(images))
"""


def on_torch(ran: Ran) -> str:
    error = ran.fails("stack expects each tensor to be equal size", "Trying to resize storage")
    ran.must("image-18" not in ran.err, "that nobody names the file")
    return error


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.status == 1 and len(ran.lines) == 4, "an error in the place of the fifth batch")
    ran.says("image-18.jpg", "HF304", "(3, 32, 32)", "(3, 32, 24)")
    return ran.says("cannot be one batch")


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, variant="unequal sizes")
