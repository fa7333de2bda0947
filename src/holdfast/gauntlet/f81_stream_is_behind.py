"""After a restart all samples of a stream come again: the position was saved in the trainer, and the worker read.

The trainer's copy of the data set stays where it was when the workers were started.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import torch
from torch.utils.data import DataLoader


class Lines(torch.utils.data.IterableDataset):
    position = 0

    def __iter__(self):
        while self.position < 24:
            self.position += 1
            yield self.position - 1

    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, state):
        self.position = state["position"]


def made():
    dataset = Lines()
    return dataset, DataLoader(dataset, batch_size=2, num_workers=1)


trained = []
dataset, loader = made()
for step, batch in enumerate(loader, 1):
    trained += batch.tolist()
    if step == 3:
        checkpoint = dataset.state_dict()
        break

dataset, loader = made()
dataset.load_state_dict(checkpoint)
for batch in loader:
    trained += batch.tolist()
print(len(trained), len(set(trained)))
"""


def on_torch(ran: Ran) -> str:
    ran.prints("30 24")
    ran.must(not ran.err, "that nobody says so")
    return "6 of 24 lines come twice, no word"


def on_holdfast(ran: Ran) -> str:
    ran.prints("24 24")
    ran.is_silent()
    return "each of 24 lines once: every batch brings along the state of the stream it came from"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="the stream is behind",
    changes={
        "checkpoint = dataset.state_dict()": "checkpoint = loader.state_dict()",
        "dataset.load_state_dict(checkpoint)": "loader.load_state_dict(checkpoint)",
    },
)
