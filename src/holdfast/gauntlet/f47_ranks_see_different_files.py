"""Each rank lists the directory itself: one has more files, and more steps, than the other.

A file that comes or goes between two listings is enough. The rank with more steps waits for the other without end.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os
import time

import torch
from torch.utils.data import DataLoader


def train(rank, rendezvous):
    torch.distributed.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=2)
    if rank == 1:
        time.sleep(0.5)
        open("data/20.jpg", "w").close()  # somebody is still copying
    files = sorted(os.listdir("data"))
    print(f"{len(DataLoader(files, batch_size=4))} steps\\n", end="")
    torch.distributed.destroy_process_group()


os.mkdir("data")
for index in range(20):
    open(f"data/{index:02}.jpg", "w").close()
rendezvous = f"file://{os.getcwd()}/rendezvous"
torch.multiprocessing.start_processes(train, (rendezvous,), nprocs=2, start_method="fork")
"""


def on_torch(ran: Ran) -> str:
    ran.ends_well()
    ran.must(sorted(ran.lines) == ["5 steps", "6 steps"], "two ranks with different numbers of steps")
    return "5 steps on one rank, 6 on the other"


def on_holdfast(ran: Ran) -> str:
    ran.prints("5 steps", "5 steps")
    return "5 steps on both: manifest gives all ranks one list"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={
        "from torch.utils.data import DataLoader\n": "from holdfast import DataLoader, manifest\n",
        'files = sorted(os.listdir("data"))': 'files = manifest("data")',
    },
)
