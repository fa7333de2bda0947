"""A run that was killed begins its epoch anew: the loader has no state that a checkpoint could hold.

Models, optimizers and schedulers have `state_dict()` and `load_state_dict()`; torch's loader and samplers have not.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import multiprocessing
import os
import random
import signal

import torch
from torch.utils.data import DataLoader


class Crops:
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return index, random.randrange(1_000_000)


def train(checkpoint, killed_after=None):
    torch.manual_seed(0)
    loader = DataLoader(Crops(), batch_size=2, shuffle=True, num_workers=2)
    if os.path.exists(checkpoint):
        loader.load_state_dict(torch.load(checkpoint))
    for step, (samples, crops) in enumerate(loader, 1):
        print(*samples.tolist(), *crops.tolist())
        torch.save(loader.state_dict(), checkpoint)
        if step == killed_after:
            os.kill(os.getpid(), signal.SIGKILL)


train("uninterrupted.pt")
killed = multiprocessing.get_context("fork").Process(target=train, args=("interrupted.pt", 2))
killed.start()
killed.join()
train("interrupted.pt")
"""


def on_torch(ran: Ran) -> str:
    return ran.fails("'DataLoader' object has no attribute 'state_dict'")


def on_holdfast(ran: Ran) -> str:
    ran.ends_well()
    ran.is_silent()
    ran.must(len(ran.lines) == 12 and ran.lines[:6] == ran.lines[6:], f"the same run twice, not {ran.lines}")
    return "killed after 2 of 6 batches: goes on with the third, the same samples and crops as uninterrupted"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, variant="no state")
