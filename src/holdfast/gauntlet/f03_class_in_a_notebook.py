"""A class that is defined in a notebook is not found by the workers.

It is pickled as `__main__.Images`. The worker's own `__main__` is another one, and a notebook has no file that could
be imported again.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import torch
from torch.utils.data import DataLoader


class Image:
    def __init__(self, number):
        self.number = number


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        return Image(index)


def collate(images):
    assert all(isinstance(image, Image) for image in images)
    return images


print("loading")
loader = DataLoader(Images(), batch_size=5, num_workers=2, collate_fn=collate, multiprocessing_context="forkserver")
images = sum(loader, [])
print([image.number for image in images], all(isinstance(image, Image) for image in images))
"""


def on_torch(ran: Ran) -> str:
    if ran.status is None:
        return f"{ran.says('get attribute')}, and {ran.hangs()}"
    ran.must(ran.status != 0, "a bad end")
    return ran.says("get attribute")


def on_holdfast(ran: Ran) -> str:
    ran.prints("loading", f"{list(range(20))} True")
    ran.is_silent()
    return "works, in both directions: what comes back is of the notebook's own class"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, without_file=True, patience=12)
