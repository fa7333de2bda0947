"""An exception of a worker arrives without its attributes, or as another type.

torch makes a new one of the same type from a text. A type with two arguments cannot be made so and becomes
RuntimeError; an OSError loses its errno and file name.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.utils.data import DataLoader


class BadImage(Exception):
    def __init__(self, path, offset):
        super().__init__(f"{path} is broken at byte {offset}")
        self.path, self.offset = path, offset


class Images:
    def __len__(self):
        return 2

    def __getitem__(self, index):
        if index == 0:
            open("/data/missing.jpg")
        raise BadImage("/data/broken.jpg", 512)


def load(index):
    try:
        list(DataLoader(Images(), sampler=[index], num_workers=1))
    except Exception as error:
        return error


if __name__ == "__main__":
    missing, broken = load(0), load(1)
    print(type(missing).__name__, missing.errno, missing.filename)
    print(type(broken).__name__, vars(broken).get("path"), vars(broken).get("offset"))
"""


def on_torch(ran: Ran) -> str:
    ran.prints("FileNotFoundError None None", "RuntimeError None None")
    return "errno and file name are None; BadImage is a RuntimeError"


def on_holdfast(ran: Ran) -> str:
    ran.prints("FileNotFoundError 2 /data/missing.jpg", "BadImage /data/broken.jpg 512")
    ran.is_silent()
    return "the same types, with all their attributes"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
