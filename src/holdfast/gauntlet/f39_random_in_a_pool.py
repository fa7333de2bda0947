"""Tasks of a pool draw the same numbers: each worker has a copy of numpy's generator, and it begins at the same place.

No error, no warning: an augmentation that is no augmentation, a simulation that is run twice.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import time

import numpy
from torch.multiprocessing import Pool
from torch.utils.data import DataLoader


def crop(number):
    time.sleep(0.02)  # it reads an image
    return numpy.random.randint(1_000_000)


if __name__ == "__main__":
    numpy.random.seed(0)
    with Pool(2) as pool:
        places = pool.map(crop, range(20), chunksize=1)
    (batch,) = DataLoader(places, batch_size=20)
    print(len(batch), len(batch.unique()))
"""


def on_torch(ran: Ran) -> str:
    ran.ends_well()
    tasks, different = map(int, ran.lines[0].split())
    ran.must(tasks == 20 and different < 20, "numbers that repeat")
    return f"20 tasks draw {different} different numbers"


def on_holdfast(ran: Ran) -> str:
    ran.prints("20 20")
    ran.is_silent()
    return "20 tasks draw 20 numbers: each has a seed of its own, for any number of workers"


IMPORTS = "from torch.multiprocessing import Pool\nfrom torch.utils.data import DataLoader\n"
ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={IMPORTS: "from holdfast import DataLoader, Pool\n"},
    patience=20,
)
