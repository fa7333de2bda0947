"""A program that ignores SIGCHLD never learns that a worker died.

torch's loader is told of a death by that signal. Web frameworks and process supervisors ignore it, so that the kernel
clears away their children.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os
import signal

from torch.utils.data import DataLoader


class Images:
    def __len__(self):
        return 20

    def __getitem__(self, index):
        if index == 7 and not os.path.exists("killed"):
            open("killed", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return index


print("loading")
batches = iter(DataLoader(Images(), num_workers=2, collate_fn=lambda samples: samples[0]))
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print(list(batches))
"""


def on_torch(ran: Ran) -> str:
    return ran.hangs()


def on_holdfast(ran: Ran) -> str:
    ran.prints("loading", str(list(range(20))))
    return "the death is noticed at once, all samples arrive in order"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, patience=5)
