"""An array in `SharedMemory` is read when the memory was closed: a segmentation fault, or other bytes.

An array does not keep the memory that it was made of. When the `SharedMemory` object is dropped, that is closed.
"""

from __future__ import annotations

from json import loads

from .row import Ran, Row

PROGRAM = """
from multiprocessing.shared_memory import SharedMemory

import numpy
from torch.utils.data import DataLoader


def shared(values):
    memory = SharedMemory(create=True, size=values.nbytes)
    array = numpy.ndarray(values.shape, values.dtype, memory.buf)
    array[:] = values
    memory.unlink()  # so that nothing is left of it
    return array


class Table:
    def __init__(self):
        self.values = shared(numpy.arange(8 << 20))

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.values[index << 20]


print([int(batch) >> 20 for batch in DataLoader(Table(), num_workers=2)])
"""


def on_torch(ran: Ran) -> str:
    if ran.status == 0:
        ran.must(len(ran.lines) == 1 and len(loads(ran.out)) == 8 and ran.out.strip() != RIGHT, "other bytes")
        return f"other bytes: {ran.out.strip()}"
    return ran.fails("Segmentation fault")


def on_holdfast(ran: Ran) -> str:
    ran.prints(RIGHT)
    ran.is_silent()
    return "every view keeps the memory: there is nothing to close"


RIGHT = str(list(range(8)))
SHARED = PROGRAM[PROGRAM.index("def shared") : PROGRAM.index("class Table")]
ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="read after it was closed",
    changes={
        "from multiprocessing.shared_memory import SharedMemory\n\n": "",
        "from torch.utils.data import DataLoader\n": "from holdfast import DataLoader, share\n",
        SHARED: "",
        "shared(numpy.arange(8 << 20))": "share(numpy.arange(8 << 20))",
    },
)
