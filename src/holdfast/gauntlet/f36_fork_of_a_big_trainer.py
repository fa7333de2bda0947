"""A trainer with much memory cannot start workers: cannot allocate memory.

A fork asks the kernel for as much memory again as the trainer has, whether it will be used or not.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import mmap

import psutil
from torch.utils.data import DataLoader

room = psutil.virtual_memory().total + psutil.swap_memory().total
private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
reserved = [mmap.mmap(-1, int(0.6 * room) >> 21 << 21, flags=private) for _ in range(2)]  # hardly any of it is used
print([int(batch) for batch in DataLoader(range(8), num_workers=2)])
"""


def on_torch(ran: Ran) -> str:
    return ran.fails("Cannot allocate memory")


def on_holdfast(ran: Ran) -> str:
    ran.prints(str(list(range(8))))
    ran.is_silent()
    return "works: the trainer is not forked"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
