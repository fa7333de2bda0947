"""A list of paths is read, and every worker comes to have a copy of it.

A forked worker shares the trainer's pages until one of the two writes to them; reading a Python object writes its count
of references.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import psutil
from torch.utils.data import DataLoader


class Images:
    def __init__(self):
        self.paths = [f"/data/train/class_{i % 1000:04}/image_{i:08}.jpg" for i in range(1_000_000)]

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return sum(len(path) for path in self.paths[index::1000])  # from all over the list, as when it is shuffled


if __name__ == "__main__":
    loader = DataLoader(Images(), batch_size=10, num_workers=2, persistent_workers=True)
    batches = iter(loader)
    total = next(batches).sum()
    workers = [psutil.Process(worker.pid) for worker in batches._workers]
    before = sum(worker.memory_full_info().uss for worker in workers)
    total += sum(batch.sum() for batch in batches)
    after = sum(worker.memory_full_info().uss for worker in workers)
    print(int(total), (after - before) >> 20)
"""
IMPORT = "from torch.utils.data import DataLoader\n"


def on_torch(ran: Ran) -> str:
    private = _private(ran)
    ran.must(private > 100, "workers that grow")
    return f"two workers have {private} MB for themselves, of a list of 1 million paths"


def on_holdfast(ran: Ran) -> str:
    private = _private(ran)
    ran.must(private < 20, "workers that do not grow")
    return f"share(dataset): one copy for all; what workers have for themselves grew by {max(0, private)} MB"


def _private(ran: Ran) -> int:
    ran.ends_well()
    total, private = ran.lines[-1].split()
    ran.must(total == str(41 * 10**6), "all paths, read")
    return int(private)


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={IMPORT: "from holdfast import DataLoader, share\n", "DataLoader(Images(),": "DataLoader(share(Images()),"},
    patience=30,
)
