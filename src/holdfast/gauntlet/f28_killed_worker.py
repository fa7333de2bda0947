"""A worker that is killed ends the run, each time with another error.

Something kills a worker once: the kernel when memory runs out, a supervisor, a colleague. Several parts of torch's
loader notice it, a signal handler, the queue, the socket of a tensor; whichever is first decides what is raised, and
nothing says which sample it was.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os
import signal

from torch.utils.data import DataLoader


class Numbers:
    def __len__(self):
        return 40

    def __getitem__(self, index):
        if index == 17 and not os.path.exists("killed"):
            open("killed", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)  # once, as the kernel does when memory runs out
        return index


loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
for batch in loader:
    print(*batch.tolist())
"""

BATCHES = [" ".join(str(index) for index in range(first, first + 4)) for first in range(0, 40, 4)]


def on_torch(ran: Ran) -> str:
    return ran.fails("exited unexpectedly", "killed by signal", "EOFError", "ConnectionResetError", "FileNotFoundError")


def on_holdfast(ran: Ran) -> str:
    ran.prints(*BATCHES)
    return "all 10 batches, in order: the lost one was loaded again by a new worker"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, variant="from outside")
