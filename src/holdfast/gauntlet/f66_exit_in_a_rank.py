"""A rank leaves by `sys.exit(0)` in the middle of its work, and the run is a success.

A status of 0 counts as success, whatever was done before; so does Ctrl-C that reaches one rank only. The model is
saved, and half of the data was never seen.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import sys

from torch.multiprocessing import spawn
from torch.utils.data import DataLoader


def train(rank):
    for step, batch in enumerate(DataLoader(range(100), batch_size=10)):
        if rank == 1 and step == 5:
            sys.exit(0)  # a library that has found something
    print(f"rank {rank} has trained\\n", end="", flush=True)


if __name__ == "__main__":
    spawn(train, nprocs=2)
    print("the model is saved")
"""


def on_torch(ran: Ran) -> str:
    ran.ends_well()
    ran.must(ran.lines == ["rank 0 has trained", "the model is saved"], "success, and nothing of rank 1")
    return "the run ends well, without rank 1"


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.status == 1 and "the model is saved" not in ran.lines, "an error")
    return ran.says("exited with status 0 before train had returned", "program.py", "HF802")


IMPORTS = "from torch.multiprocessing import spawn\nfrom torch.utils.data import DataLoader\n"
ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="exit",
    changes={IMPORTS: "from holdfast import DataLoader, spawn\n"},
    patience=20,
)
