"""`forkserver` on Windows: cannot find context for 'forkserver'.

Windows has no fork, so it has neither fork nor forkserver, whatever tutorials say. holdfast starts interpreters ahead
of need there, and that way to start is tested here.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.utils.data import DataLoader


class Squares:
    def __len__(self):
        return 20

    def __getitem__(self, index):
        return index * index


loader = DataLoader(Squares(), num_workers=1, multiprocessing_context="forkserver")
print(sum(int(batch) for batch in loader))
"""


def on_torch(ran: Ran) -> str:
    return ran.fails("cannot find context")


def on_holdfast(ran: Ran) -> str:
    ran.prints("2470")
    ran.is_silent()
    return "works without fork, and without a main guard"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={'multiprocessing_context="forkserver"': 'start="standby"'},
    not_on_torch="Windows",
)
