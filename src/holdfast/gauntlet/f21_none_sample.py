"""`except: return None` around a bad file: default_collate finds NoneType.

The error comes from the batch, not from the sample, so nothing says which file it was.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.utils.data import DataLoader


class Images:
    def __init__(self):
        self.paths = [f"image-{index}.jpg" for index in range(40)]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        try:
            if index == 16:
                raise OSError("image file is truncated")
            return float(index), index
        except OSError:
            return None, None


for images, labels in DataLoader(Images(), batch_size=4, num_workers=2):
    print(len(images))
"""


def on_torch(ran: Ran) -> str:
    error = ran.fails("default_collate: batch must contain")
    ran.must("image-16" not in ran.err, "that nobody names the file")
    return error


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.status == 1 and len(ran.lines) == 4, "an error in the place of the fifth batch")
    ran.says("image-16.jpg", "HF303", 'on_error="skip"')
    return ran.says("dataset[16] gave None")


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
