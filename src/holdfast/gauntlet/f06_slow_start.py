"""Under spawn the first batch of every epoch takes seconds.

Each worker is a new interpreter that imports torch and everything else again, one set of them per epoch.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import time

from torch.utils.data import DataLoader


class Numbers:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return index


if __name__ == "__main__":
    loader = DataLoader(Numbers(), num_workers=2, multiprocessing_context="spawn")
    next(iter(loader))
    for epoch in range(2):
        began = time.monotonic()
        iterator = iter(loader)
        first = int(next(iterator))
        seconds = time.monotonic() - began
        assert [first, *map(int, iterator)] == list(range(8))
        print(f"{seconds:.3f}")
"""


def on_torch(ran: Ran) -> str:
    ran.ends_well()
    seconds = min(float(line) for line in ran.lines)
    ran.must(seconds > 1, "more than a second to the first batch")
    return f"{seconds:.1f} s to the first batch of each epoch"


def on_holdfast(ran: Ran) -> str:
    ran.ends_well()
    ran.is_silent()
    seconds = min(float(line) for line in ran.lines)
    ran.must(len(ran.lines) == 2 and seconds < 0.5, f"less than half a second to the first batch, not {seconds} s")
    return f"{seconds:.2f} s to the first batch, with workers as clean as spawned ones"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={', multiprocessing_context="spawn"': ""},
    patience=30,
)
