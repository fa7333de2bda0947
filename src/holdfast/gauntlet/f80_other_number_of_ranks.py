"""A run of 2 ranks that goes on with 3 repeats samples.

What was given on 2 ranks is no whole number of steps of 3, and steps are all that can be skipped. The shares of the
ranks are filled up with repeated samples on top of that.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from itertools import islice

from torch.utils.data import DataLoader, DistributedSampler

images = range(50)


def ranks(count):
    for rank in range(count):
        sampler = DistributedSampler(images, count, rank)
        yield DataLoader(images, batch_size=2, sampler=sampler)


given = []
for loader in ranks(2):
    for step, batch in enumerate(loader, 1):
        given += batch.tolist()
        if step == 5:
            checkpoint = {"samples": 5 * 2 * 2}
            break
for loader in ranks(3):
    for batch in islice(loader, checkpoint["samples"] // (2 * 3), None):
        given += batch.tolist()
print(len(given), len(set(given)))
"""


def on_torch(ran: Ran) -> str:
    ran.ends_well()
    given, different = map(int, ran.lines[0].split())
    ran.must(different == 50 < given and not ran.err, "repeated samples, and that nobody says so")
    return f"{given} samples of 50: {given - different} come twice, no word"


def on_holdfast(ran: Ran) -> str:
    ran.prints("50 50")
    ran.is_silent()
    return "each of 50 samples once: what was given is a place in an order that all ranks share"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="another number of ranks",
    changes={
        "from itertools import islice\n\n": "",
        "from torch.utils.data import DataLoader": "from holdfast import DataLoader",
        "count, rank)": 'count, rank, tail="exact")',
        '{"samples": 5 * 2 * 2}': "loader.state_dict()",
        '    for batch in islice(loader, checkpoint["samples"] // (2 * 3), None):\n': (
            "    loader.load_state_dict(checkpoint)\n    for batch in loader:\n"
        ),
    },
)
