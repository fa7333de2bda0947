"""`except Exception` around a bad file hides a mistake in the program: every sample is bad.

A name that is not defined is an exception like any other. All samples are left out, and the run looks successful.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.utils.data import DataLoader


def load(index):
    return imread(f"image-{index}.jpg")  # which was never imported


class Images:
    def __len__(self):
        return 40

    def __getitem__(self, index):
        try:
            return load(index)
        except Exception:  # leave out bad files
            return None


def collate(samples):
    return [sample for sample in samples if sample is not None]


loader = DataLoader(Images(), batch_size=4, num_workers=2, collate_fn=collate)
print(sum(len(batch) for batch in loader), "images")
"""


def on_torch(ran: Ran) -> str:
    ran.prints("0 images")
    return "an epoch of 0 images, no error"


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.status == 1 and not ran.out, "an error")
    return ran.says("NameError: name 'imread' is not defined")


GUARDED = """        try:
            return load(index)
        except Exception:  # leave out bad files
            return None
"""
ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={GUARDED: "        return load(index)\n", "collate_fn=collate": 'on_error="skip"'},
)
