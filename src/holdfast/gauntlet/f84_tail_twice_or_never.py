"""10 samples on 4 ranks are 12, or 8: the tail comes twice, or never.

`DistributedSampler` makes all shares equal. An accuracy over the ranks is that of another data set.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.utils.data import DataLoader, DistributedSampler

images = range(10)
for options in [{"drop_last": False}, {"drop_last": True}]:
    evaluated, steps = [], []
    for rank in range(4):
        loader = DataLoader(images, batch_size=2, sampler=DistributedSampler(images, 4, rank, **options))
        batches = [batch.tolist() for batch in loader]
        evaluated += sum(batches, [])
        steps.append(len(batches))
    print(len(evaluated), len(set(evaluated)), *steps)
"""


def on_torch(ran: Ran) -> str:
    ran.prints("12 10 2 2 2 2", "8 8 1 1 1 1")
    ran.must(not ran.err, "that nobody says so")
    return "2 of 10 samples are counted twice, or with drop_last=True never, no word"


def on_holdfast(ran: Ran) -> str:
    ran.prints("10 10 2 2 2 2")
    ran.is_silent()
    return "each of 10 samples once, in 2 steps on each of 4 ranks"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="the tail",
    changes={
        "from torch.utils.data import DataLoader": "from holdfast import DataLoader",
        '[{"drop_last": False}, {"drop_last": True}]': '[{"tail": "exact"}]',
    },
)
