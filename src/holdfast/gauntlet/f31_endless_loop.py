"""A worker is in an endless loop in C code: silence, for ever.

A regular expression that backtracks, a decoder that reads the same block again. No other thread of that worker runs,
as the loop holds the interpreter.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import itertools

from torch.utils.data import DataLoader


class Images:
    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == 5:
            sum(itertools.repeat(0))
        return index


print("loading")
loader = DataLoader(Images(), batch_size=2, num_workers=2)
for batch in loader:
    print(*batch.tolist())
print("trained")
"""


TOLD = "print(*loader.faults[0].error.why.splitlines()[:1])"


def on_torch(ran: Ran) -> str:
    return ran.hangs()


def on_holdfast(ran: Ran) -> str:
    ran.ends_well()
    *batches, why = ran.lines[1:]
    samples = [int(number) for batch in batches for number in batch.split()]
    ran.must(len(batches) == 6 and set(samples) == set(range(12)) - {5}, "6 full batches without sample 5")
    ran.must("runs on the CPU" in why, "what it was doing")
    return f"skipped, in 6 full batches; the ledger says: {why}"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="an endless loop",
    changes={"num_workers=2)": 'num_workers=2, stall_timeout=1, on_error="skip")', 'print("trained")': TOLD},
)
