"""Every rank loads the model for itself, if it can: as many copies of the weights as there are ranks.

A file is read by each of them into memory of its own.
"""

from __future__ import annotations

from .f65_error_in_a_rank import IMPORTS
from .row import Ran, Row

PROGRAM = """
import torch
from torch.multiprocessing import Process
from torch.utils.data import DataLoader


def own_memory():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) // 1024 for line in file if line.startswith("Anonymous:"))


def label(rank, model):
    before = own_memory()
    model = torch.nn.Linear(4096, 4096)
    model.load_state_dict(torch.load("weights.pt"))
    with torch.no_grad():
        for batch in DataLoader(torch.ones(64, 4096), batch_size=64):
            labels = model(batch).argmax(1)
    print(f"{rank} {len(set(labels.tolist()))} {own_memory() - before}\\n", end="")


if __name__ == "__main__":
    model = torch.nn.Linear(4096, 4096)  # 64 MB
    torch.save(model.state_dict(), "weights.pt")
    ranks = [Process(target=label, args=[rank, None]) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
"""
LOADED = """    model = torch.nn.Linear(4096, 4096)
    model.load_state_dict(torch.load("weights.pt"))
"""
RANKS = PROGRAM[PROGRAM.index("    torch.save(") :]


def on_torch(ran: Ran) -> str:
    own = _own(ran)
    ran.must(min(own) >= 64, "a copy in each rank")
    return f"two ranks have {sum(own)} MB more for themselves, for weights of 64 MB"


def on_holdfast(ran: Ran) -> str:
    own = _own(ran)
    ran.must(max(own) < 64, "one copy for all")
    return f"share(model): one copy for all, and {sum(own)} MB for themselves"


def _own(ran: Ran) -> list[int]:
    ran.ends_well()
    rows = sorted(line.split() for line in ran.lines)
    ran.must([row[:2] for row in rows] == [["0", "1"], ["1", "1"]], "labels of two ranks")
    return [int(own) for _, _, own in rows]


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="a copy for each rank",
    changes={
        IMPORTS: "from holdfast import DataLoader, share, spawn\n",
        LOADED: "",
        RANKS: "    spawn(label, (share(model),), nprocs=2)\n",
    },
    patience=20,
)
