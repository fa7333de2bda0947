"""After a restart samples are missing: the sampler's state was saved, and the sampler was ahead.

Workers are given work in advance. What they were loading when the state was saved counts as seen, and nobody trains on
it.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import torch
from torch.utils.data import DataLoader


class Resumable(torch.utils.data.Sampler):
    given = 0

    def __iter__(self):
        order = torch.randperm(24, generator=torch.Generator().manual_seed(0)).tolist()
        while self.given < len(order):
            self.given += 1
            yield order[self.given - 1]

    def state_dict(self):
        return {"given": self.given}

    def load_state_dict(self, state):
        self.given = state["given"]


def made():
    sampler = Resumable()
    return sampler, DataLoader(range(24), batch_size=2, sampler=sampler, num_workers=2)


trained = []
sampler, loader = made()
for step, batch in enumerate(loader, 1):
    trained += batch.tolist()
    if step == 3:
        checkpoint = sampler.state_dict()
        break

sampler, loader = made()
sampler.load_state_dict(checkpoint)
for batch in loader:
    trained += batch.tolist()
print(len(trained), len(set(trained)))
"""


def on_torch(ran: Ran) -> str:
    ran.ends_well()
    trained, different = map(int, ran.lines[0].split())
    ran.must(trained == different < 24 and not ran.err, "missing samples, and that nobody says so")
    return f"{24 - trained} of 24 samples are missing, no word"


def on_holdfast(ran: Ran) -> str:
    ran.prints("24 24")
    ran.is_silent()
    return "each of 24 samples once: the state is that of the batch that was given last"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="the sampler is ahead",
    changes={
        "checkpoint = sampler.state_dict()": "checkpoint = loader.state_dict()",
        "sampler.load_state_dict(checkpoint)": "loader.load_state_dict(checkpoint)",
    },
)
