"""Memory runs out and the kernel ends a worker: the run is over, and nobody says why.

The limit of a container is reached, and the kernel picks the process that has most. All that torch sees of it is
SIGKILL, or less.
"""

from __future__ import annotations

from .row import Ran, Room, Row

PROGRAM = """
from torch.utils.data import DataLoader


class Images:
    def __len__(self):
        return 40

    def __getitem__(self, index):
        if index == 17:
            return len(b"x" * (4 << 30))  # a very large image
        return index


for batch in DataLoader(Images(), batch_size=4, num_workers=2):
    print(*batch.tolist())
"""


def on_torch(ran: Ran) -> str:
    ran.must("out of memory" not in ran.err.lower(), "that nobody speaks of memory")
    return ran.fails("exited unexpectedly", "killed by signal", "EOFError", "ConnectionResetError", "FileNotFoundError")


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.status == 1 and len(ran.lines) == 4, "an error in the place of the fifth batch")
    ran.says("was killed by SIGKILL while it loaded sample 17 of batch 4", "1.0 GiB")
    return ran.says("oom_kill")


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, variant="out of memory", room=Room(memory=1 << 30))
