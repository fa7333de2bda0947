"""One rank has a step more than the other, and waits in a collective for what never comes.

Shares that are cut without repeating a sample are unequal. The rank with the longer one reduces its gradients alone,
until the time limit of the process group: here 5 seconds, 30 minutes by default.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os
from datetime import timedelta

import torch
from torch.utils.data import DataLoader

images = range(17)


def train(rank, rendezvous):
    torch.distributed.init_process_group(
        "gloo", init_method=rendezvous, rank=rank, world_size=2, timeout=timedelta(seconds=5)
    )
    trained = 0
    for batch in DataLoader(images, batch_size=4, sampler=range(rank, 17, 2)):
        gradient = torch.tensor([len(batch)])
        torch.distributed.all_reduce(gradient)
        trained += int(gradient)
        if rank == 0:
            print(f"{trained} samples")
    torch.distributed.barrier()


rendezvous = f"file://{os.getcwd()}/rendezvous"
torch.multiprocessing.start_processes(train, (rendezvous,), nprocs=2, start_method="fork")
"""


def on_torch(ran: Ran) -> str:
    ran.must(ran.lines == ["8 samples", "16 samples"], "two steps of three")
    return ran.fails("Timed out waiting", "Connection closed by peer")


def on_holdfast(ran: Ran) -> str:
    ran.prints("8 samples", "15 samples", "17 samples")
    ran.is_silent()
    return "3 steps on both ranks, and each of 17 samples once"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="a step more",
    changes={
        "from torch.utils.data import DataLoader\n": "from holdfast import DataLoader, DistributedSampler\n",
        "sampler=range(rank, 17, 2)": 'sampler=DistributedSampler(images, tail="exact")',
    },
    patience=20,
)
