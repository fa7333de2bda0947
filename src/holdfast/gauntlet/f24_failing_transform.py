"""A transform fails: which one, on which input?

The traceback has the line of code. What it was given, and at which sample, it does not have.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import torch
from torch.utils.data import DataLoader


class Compose:  # as in torchvision
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class Scale:
    def __call__(self, image):
        return image / 255


class CenterCrop:
    def __call__(self, image):
        return image[:, 2:30, 2:30].reshape(3, 28, 28)


class Images:
    def __init__(self, transform):
        self.paths, self.transform = [f"image-{index}.jpg" for index in range(40)], transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.transform(torch.zeros(3, 20 if index == 17 else 32, 32))


for batch in DataLoader(Images(Compose([Scale(), CenterCrop()])), batch_size=4, num_workers=2):
    print(len(batch))
"""


def on_torch(ran: Ran) -> str:
    error = ran.fails("invalid for input of size")
    ran.must("image-17" not in ran.err and "17" not in error, "that nobody names the sample")
    return error


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.status == 1 and len(ran.lines) == 4, "an error in the place of the fifth batch")
    ran.says("invalid for input of size", "image-17.jpg", "CenterCrop", "(3, 20, 32)")
    return ran.says("transform 2 of 2 in Compose")


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
