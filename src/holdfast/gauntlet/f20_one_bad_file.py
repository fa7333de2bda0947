"""One bad file among thousands ends the run.

torch raises the first error of any sample, and with it the iteration is over, after a week as after a minute.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import json

from torch.utils.data import DataLoader


class Records:
    def __init__(self):
        self.paths = [f"record-{index}.json" for index in range(40)]
        for index, path in enumerate(self.paths):
            with open(path, "w") as file:
                file.write("[1, 2" if index == 17 else str(index))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with open(self.paths[index]) as file:
            return json.load(file)


loader = DataLoader(Records(), batch_size=4, num_workers=2)
for batch in loader:
    print(*batch.tolist())
print("trained")
"""


FAULT = (
    'print(*[f"{fault.index} {fault.where} {type(fault.error).__name__} {fault.action}" for fault in loader.faults])'
)


def on_torch(ran: Ran) -> str:
    ran.must("trained" not in ran.lines, "that the run ends early")
    return ran.fails("JSONDecodeError")


def on_holdfast(ran: Ran) -> str:
    ran.ends_well()
    *batches, fault = ran.lines
    samples = [int(number) for batch in batches for number in batch.split()]
    ran.must(len(batches) == 10 and len(samples) == 40, "10 full batches")
    ran.must(set(samples) == set(range(40)) - {17}, "all samples but the bad one")
    ran.must(fault == "17 record-17.json JSONDecodeError skipped", "index, path and reason in the ledger")
    return "10 full batches; the ledger has index, path and reason of the bad one"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={"num_workers=2)": 'num_workers=2, on_error="skip")', 'print("trained")': FAULT},
)
