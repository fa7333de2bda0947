"""A function that is defined under the main guard is not found by spawned workers: tracebacks, and no end.

A worker imports the program without what is under the guard. It cannot read its task and dies; the next one reads
another task and dies, and nobody answers.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.multiprocessing import get_context
from torch.utils.data import DataLoader

if __name__ == "__main__":

    def square(number):
        return number * number

    print("computing", flush=True)
    with get_context("spawn").Pool(2) as pool:
        squares = pool.map(square, range(6))
    print(*[number for batch in DataLoader(squares) for number in batch.tolist()])
"""


def on_torch(ran: Ran) -> str:
    said = ran.says("Can't get attribute 'square'")
    return f"{said}; it {ran.hangs()}"


def on_holdfast(ran: Ran) -> str:
    ran.prints("computing", "0 1 4 9 16 25")
    ran.is_silent()
    return "works: the function itself is sent, not its name"


IMPORTS = "from torch.multiprocessing import get_context\nfrom torch.utils.data import DataLoader\n"
ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={
        IMPORTS: "from holdfast import DataLoader, Pool\n",
        'get_context("spawn").Pool(2)': 'Pool(2, start="spawn")',
    },
    patience=12,
)
