"""All samples of one batch are bad, and nothing is left to collate.

Whoever leaves bad samples out in a collate function meets this sooner or later: a folder that was copied badly gives
bad files in a row.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.utils.data import DataLoader, default_collate


class Images:
    def __len__(self):
        return 40

    def __getitem__(self, index):
        if 8 <= index < 12:
            raise OSError(f"image {index} is truncated")
        return index


class Forgiving(Images):
    def __getitem__(self, index):
        try:
            return super().__getitem__(index)
        except OSError:
            return None


def collate(samples):
    return default_collate([sample for sample in samples if sample is not None])


for batch in DataLoader(Forgiving(), batch_size=4, num_workers=2, collate_fn=collate):
    print(*batch.tolist())
"""


def on_torch(ran: Ran) -> str:
    return ran.fails("IndexError", "default_collate")


def on_holdfast(ran: Ran) -> str:
    ran.ends_well()
    samples = [int(number) for line in ran.lines for number in line.split()]
    ran.must(len(ran.lines) == 10 and len(samples) == 40, "10 full batches")
    ran.must(set(samples) == set(range(40)) - {8, 9, 10, 11}, "all good samples and no bad one")
    return "10 full batches: the bad ones are replaced by other samples"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="all bad",
    changes={
        "from torch.utils.data import DataLoader, default_collate\n": "from holdfast import DataLoader\n",
        "DataLoader(Forgiving()": "DataLoader(Images()",
        "collate_fn=collate": 'on_error="skip"',
    },
)
