"""A loader in a worker of a pool: daemonic processes are not allowed to have children.

The workers of `multiprocessing.Pool` are daemons, and Python refuses to let those start processes, as these would be
left behind.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import multiprocessing

from torch.utils.data import DataLoader


def evaluate(fold):
    loader = DataLoader(range(fold, fold + 8), batch_size=4, num_workers=2)
    return [batch.tolist() for batch in loader]


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.map(evaluate, [0, 100]))
"""


def on_torch(ran: Ran) -> str:
    return ran.fails("daemonic processes are not allowed to have children")


def on_holdfast(ran: Ran) -> str:
    ran.prints(str([[[0, 1, 2, 3], [4, 5, 6, 7]], [[100, 101, 102, 103], [104, 105, 106, 107]]]))
    ran.is_silent()
    return "works: workers are no daemons and still end with their parent"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
