"""Lambdas and local classes cannot be pickled under spawn and forkserver.

Whatever a worker needs is pickled by name, and a lambda or a class inside a function has none. Under fork nothing is
pickled, so the same code works on Linux and fails on Windows, on macOS and, from Python 3.14, on Linux.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.utils.data import DataLoader


def squares():
    class Squares:
        transform = staticmethod(lambda x: x * x)

        def __len__(self):
            return 20

        def __getitem__(self, index):
            return self.transform(index)

    return Squares()


if __name__ == "__main__":
    loader = DataLoader(
        squares(),
        batch_size=4,
        num_workers=2,
        collate_fn=lambda samples: [-sample for sample in samples],
        worker_init_fn=lambda worker: None,
        multiprocessing_context="forkserver",
    )
    print(sum(loader, []))
"""


def on_torch(ran: Ran) -> str:
    return ran.fails("Can't pickle local object", "Can't get local object")


def on_holdfast(ran: Ran) -> str:
    ran.prints(str([-index * index for index in range(20)]))
    ran.is_silent()
    return "works: code travels by value"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, patience=20)
