"""A worker was stopped by a signal: silence, for ever.

Job control, a debugger, a cluster's scheduler that pauses processes: SIGSTOP, and nobody sends SIGCONT.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os
import signal

from torch.utils.data import DataLoader


class Images:
    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == 5 and not os.path.exists("stopped"):
            open("stopped", "w").close()
            os.kill(os.getpid(), signal.SIGSTOP)
        return index


print("loading")
loader = DataLoader(Images(), batch_size=2, num_workers=2)
for batch in loader:
    print(*batch.tolist())
print("trained")
"""


TOLD = "print(*loader.faults[0].error.why.splitlines()[:1])"


def on_torch(ran: Ran) -> str:
    return ran.hangs()


def on_holdfast(ran: Ran) -> str:
    ran.ends_well()
    ran.must(ran.lines[:-1] == ["loading", *(f"{index} {index + 1}" for index in range(0, 12, 2))], "all batches")
    ran.must("is stopped" in ran.lines[-1] and "kill -CONT" in ran.lines[-1], "what it was doing")
    return f"tried again in a new worker, all batches in order; the ledger says: {ran.lines[-1]}"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="SIGSTOP",
    changes={"num_workers=2)": 'num_workers=2, stall_timeout=1, on_error="retry")', 'print("trained")': TOLD},
)
