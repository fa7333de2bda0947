"""All workers run on one core.

A worker inherits the cores of the thread that starts it, and libraries bind that one: OpenMP with OMP_PROC_BIND,
launchers with numactl.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os

from torch.utils.data import DataLoader


class Cores:
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return len(os.sched_getaffinity(0))


allowed = os.sched_getaffinity(0)
os.sched_setaffinity(0, {min(allowed)})  # as a library does
print(len(allowed), [int(batch) for batch in DataLoader(Cores(), num_workers=2)])
"""


def on_torch(ran: Ran) -> str:
    ran.ends_well()
    ran.must(not ran.out.startswith("1 ") and "[1, 1, 1, 1]" in ran.out, "workers on one of several cores")
    return f"{ran.out.split()[0]} cores, and all workers on one"


def on_holdfast(ran: Ran) -> str:
    cores = ran.out.split()[0] if ran.out else "?"
    ran.prints(f"{cores} [{cores}, {cores}, {cores}, {cores}]")
    return f"each worker may use all {cores} cores"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
