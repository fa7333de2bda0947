"""A global that is set in the main part is None in the workers.

They import the script anew, without the part under the main guard.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.utils.data import DataLoader

config = None


class Images:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return index * config["scale"]


if __name__ == "__main__":
    config = {"scale": 2}
    print([int(batch) for batch in DataLoader(Images(), num_workers=2, multiprocessing_context="forkserver")])
"""


def on_torch(ran: Ran) -> str:
    return ran.fails("'NoneType' object is not subscriptable")


def on_holdfast(ran: Ran) -> str:
    ran.prints("[0, 2, 4, 6, 8, 10, 12, 14]")
    ran.is_silent()
    return "works: globals that the data set uses travel with it"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, patience=20)
