"""A decoder that leaks fills the memory, over hours or days.

A worker lives for an epoch, or with persistent_workers for the whole run, and what its libraries do not give back
adds up.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import torch
from torch.utils.data import DataLoader

leaked = []


class Images:
    def __len__(self):
        return 200

    def __getitem__(self, index):
        leaked.append(bytearray(1 << 20))
        return index, len(leaked)


largest, seen = 0, []
for indices, megabytes in DataLoader(Images(), batch_size=4, num_workers=2):
    largest = max(largest, int(megabytes.max()))
    seen += indices.tolist()
print(seen == list(range(200)), largest)
"""


def on_torch(ran: Ran) -> str:
    leaked = _leaked(ran)
    ran.must(leaked >= 80, "a worker that grows")
    return f"a worker had leaked {leaked} MB after 25 batches"


def on_holdfast(ran: Ran) -> str:
    leaked = _leaked(ran)
    ran.must(leaked <= 20, "workers that are replaced after 5 batches")
    return f"no worker leaked more than {leaked} MB; all batches in order"


def _leaked(ran: Ran) -> int:
    ran.ends_well()
    complete, leaked = ran.lines[-1].split()
    ran.must(complete == "True", "all samples, in order")
    return int(leaked)


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={"num_workers=2)": "num_workers=2, recycle_after=5)"},
)
