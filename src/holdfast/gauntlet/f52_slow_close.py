"""Leaving the loop early takes five seconds.

The iterator waits for each worker, up to five seconds, while that one finishes what nobody wants any more.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import time

from torch.utils.data import DataLoader


class Images:
    def __len__(self):
        return 100

    def __getitem__(self, index):
        time.sleep(60 if index > 1 else 0)
        return index


print("loading")
for batch in DataLoader(Images(), num_workers=1):
    began = time.monotonic()
    break
print(f"{time.monotonic() - began:.2f}")
"""


def on_torch(ran: Ran) -> str:
    seconds = _closing(ran)
    ran.must(seconds > 3, "seconds to leave the loop")
    return f"{seconds:.1f} s to leave the loop"


def on_holdfast(ran: Ran) -> str:
    ran.is_silent()
    seconds = _closing(ran)
    ran.must(seconds < 1, "less than a second to leave the loop")
    return f"{seconds:.2f} s to leave the loop"


def _closing(ran: Ran) -> float:
    ran.ends_well()
    return float(ran.lines[-1])


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, patience=12)
