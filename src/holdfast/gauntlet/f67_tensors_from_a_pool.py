"""A pool that returns some hundred tensors: too many open files, and then silence.

Each tensor that comes from a worker holds a descriptor for as long as it lives. The thread that receives results ends
with the error, and `map` waits for a result that nobody receives.
"""

from __future__ import annotations

from .row import Ran, Room, Row

PROGRAM = """
import torch
from torch.multiprocessing import Pool
from torch.utils.data import DataLoader


def embed(number):
    return torch.full((1024,), float(number))


if __name__ == "__main__":
    print("embedding", flush=True)
    with Pool(2) as pool:
        rows = pool.map(embed, range(1000))
    (batch,) = DataLoader(rows, batch_size=1000)
    print(len(batch), bool((batch == torch.arange(1000.0).unsqueeze(1)).all()))
"""


def on_torch(ran: Ran) -> str:
    if ran.status is None:
        said = ran.says("Too many open files") if "Too many open files" in ran.err else ran.says("ancdata")
        return f"{said}; it {ran.hangs()}"
    return ran.fails("Too many open files", "ancdata")


def on_holdfast(ran: Ran) -> str:
    ran.prints("embedding", "1000 True")
    ran.is_silent()
    return "1,000 tensors are kept with 256 descriptors allowed"


IMPORTS = "from torch.multiprocessing import Pool\nfrom torch.utils.data import DataLoader\n"
ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={IMPORTS: "from holdfast import DataLoader, Pool\n"},
    room=Room(descriptors=256),
    patience=8,
)
