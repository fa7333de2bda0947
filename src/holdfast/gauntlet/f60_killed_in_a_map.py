"""A worker of a pool is killed, and `map` waits for ever.

The pool sees the dead process and starts another one. The task that it had is forgotten; nobody will ever answer.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os
import signal

from torch.multiprocessing import Pool
from torch.utils.data import DataLoader


def resize(number):
    if number == 7 and not os.path.exists("killed"):
        open("killed", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)  # once, as the kernel does when memory runs out
    return number * number


if __name__ == "__main__":
    print("resizing", flush=True)
    with Pool(2) as pool:
        images = pool.map(resize, range(20))
    for batch in DataLoader(images, batch_size=20):
        print(*batch.tolist())
"""

SQUARES = " ".join(str(number * number) for number in range(20))


def on_torch(ran: Ran) -> str:
    return ran.hangs()


def on_holdfast(ran: Ran) -> str:
    ran.prints("resizing", SQUARES)
    ran.says("SIGKILL", "resize(7)")
    return "all 20 results: the task that was lost was tried again in a new worker, and the ledger says so"


IMPORTS = "from torch.multiprocessing import Pool\nfrom torch.utils.data import DataLoader\n"
ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={IMPORTS: "from holdfast import DataLoader, Pool\n", "Pool(2)": "Pool(2, retries=1)"},
)
