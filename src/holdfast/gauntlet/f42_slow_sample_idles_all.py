"""One slow sample, and all other workers wait.

Batches are dealt out in turn, and a worker gets the next one only when one of its own was delivered, in order.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os
import time

from torch.utils.data import DataLoader


def loaded():
    return sum(name.startswith("loaded") for name in os.listdir())


class Images:
    def __len__(self):
        return 60

    def __getitem__(self, index):
        if index == 0:
            deadline = time.monotonic() + 1
            while loaded() < 30 and time.monotonic() < deadline:
                time.sleep(0.01)
            print(f"{loaded()} others were loaded during a slow one")
        open(f"loaded {index}", "w").close()
        return index


print([int(batch) for batch in DataLoader(Images(), num_workers=2)])
"""


def on_torch(ran: Ran) -> str:
    others = _others(ran)
    ran.must(others < 10, "workers that wait")
    return f"{others} others were loaded meanwhile"


def on_holdfast(ran: Ran) -> str:
    ran.is_silent()
    others = _others(ran)
    ran.must(others >= 30, "workers that go on")
    return f"{others} others were loaded meanwhile, and the order is kept"


def _others(ran: Ran) -> int:
    ran.ends_well()
    ran.must(ran.lines[-1] == str(list(range(60))), "all samples in order")
    return int(ran.lines[0].split()[0])


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
