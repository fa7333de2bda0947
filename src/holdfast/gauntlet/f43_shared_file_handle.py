"""Two workers read through one file handle: most records are wrong, and nothing says so.

A forked worker has the trainer's open file, and with it the same position: one seeks, the other reads.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import struct
import time

from torch.utils.data import DataLoader

with open("records.bin", "wb") as file:
    for index in range(400):
        file.write(struct.pack("q", index))


class Records:
    def __init__(self):
        self.file = open("records.bin", "rb", buffering=0)

    def __len__(self):
        return 400

    def __getitem__(self, index):
        self.file.seek(8 * index)
        time.sleep(0.001)  # a slow disk
        return struct.unpack("q", self.file.read(8))[0]


if __name__ == "__main__":
    loader = DataLoader(Records(), batch_size=20, num_workers=2, shuffle=False)
    read = [record for batch in loader for record in batch.tolist()]
    print(sum(record != index for index, record in enumerate(read)), "of", len(read), "records are wrong")
"""


def on_torch(ran: Ran) -> str:
    if ran.status:
        return ran.fails("unpack requires", "struct.error")
    ran.ends_well()
    ran.must(int(ran.out.split()[0]) > 0, "wrong records")
    return ran.out.strip()


def on_holdfast(ran: Ran) -> str:
    ran.prints("0 of 400 records are wrong")
    ran.is_silent()
    return "all records are right: each worker opens the file for itself"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={
        "from torch.utils.data import DataLoader\n": "from holdfast import DataLoader, per_worker\n",
        'self.file = open("records.bin"': 'self.file = per_worker(open, "records.bin"',
    },
)
