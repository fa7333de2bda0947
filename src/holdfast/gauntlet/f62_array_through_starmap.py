"""An array that all workers are to count in cannot be passed to them: only through inheritance.

`Array`, `Value` and `Lock` travel only while a process is being started, and the workers of a pool have been.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.multiprocessing import Array, Pool
from torch.utils.data import DataLoader


def count(counts, labels):
    for label in labels:
        with counts.get_lock():
            counts[label] += 1


if __name__ == "__main__":
    counts = Array("i", 4)
    batches = DataLoader([i % 4 for i in range(2000)], batch_size=100)
    with Pool(2) as pool:
        pool.starmap(count, [(counts, batch) for batch in batches])
    print([int(number) for number in counts])
"""


def on_torch(ran: Ran) -> str:
    return ran.fails("should only be shared between processes through inheritance")


def on_holdfast(ran: Ran) -> str:
    ran.prints("[500, 500, 500, 500]")
    ran.is_silent()
    return "an array of share(...) is an argument, and its lock makes the total exact"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={
        "from torch.multiprocessing import Array, Pool\nfrom torch.utils.data import DataLoader\n": (
            "import numpy\nfrom holdfast import DataLoader, Pool, share\n"
        ),
        'Array("i", 4)': 'share(numpy.zeros(4, "i"))',
        "counts.get_lock()": "counts.lock",
    },
    patience=20,
)
