"""To get to where the run was stopped, everything before it is loaded again.

torch's loader can only be asked for the next batch. Skipping batches fetches, decodes and throws away each of them.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import torch
from torch.utils.data import DataLoader

loaded = 0


class Images:
    def __len__(self):
        return 100

    def __getitem__(self, index):
        global loaded
        loaded += 1
        return index


def made():
    return DataLoader(Images(), batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(0))


loader = made()
for step, batch in enumerate(loader):
    if step == 20:
        expected = batch.tolist()
        break
    checkpoint = {"batches": step + 1}

loader, loaded = made(), 0
batches = iter(loader)
for step in range(checkpoint["batches"]):
    next(batches)
print(next(batches).tolist() == expected, loaded)
"""


def on_torch(ran: Ran) -> str:
    ran.prints("True 84")
    return "84 samples are loaded to get batch 20, of 4 samples"


def on_holdfast(ran: Ran) -> str:
    ran.prints("True 4")
    ran.is_silent()
    return "4 samples are loaded to get batch 20, of 4 samples"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="skipping",
    changes={
        '{"batches": step + 1}': "loader.state_dict()",
        'batches = iter(loader)\nfor step in range(checkpoint["batches"]):\n    next(batches)\n': (
            "loader.load_state_dict(checkpoint)\nbatches = iter(loader)\n"
        ),
    },
)
