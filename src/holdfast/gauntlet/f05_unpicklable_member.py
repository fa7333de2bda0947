"""A data set that holds an open database cannot be pickled, and nobody says where it is.

The error of pickle has the type of the object, not the path to it, and in a data set of several layers that type
occurs in many places.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import sqlite3

from torch.utils.data import DataLoader


class Store:
    def __init__(self):
        self.connection = sqlite3.connect(":memory:")


class Records:
    def __init__(self):
        self.layers = [Store(), Store()]

    def __len__(self):
        return 20

    def __getitem__(self, index):
        return index


if __name__ == "__main__":
    for batch in DataLoader(Records(), num_workers=2, multiprocessing_context="forkserver"):
        print(batch)
"""


def on_torch(ran: Ran) -> str:
    error = ran.fails("cannot pickle")
    ran.must("layers" not in ran.err, "that nobody names the member")
    return error


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.status == 1, "an error")
    return ran.says("dataset.layers[0].connection (sqlite3.Connection) cannot be pickled", "HF101", "in each worker")


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, patience=20)
