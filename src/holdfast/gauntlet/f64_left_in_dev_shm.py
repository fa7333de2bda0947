"""A job is killed, and its shared memory is left in /dev/shm until the machine is started again.

A block of `SharedMemory` is a file that somebody has to remove; when all who would are killed at once, nobody does.
"""

from __future__ import annotations

from .row import Ran, Room, Row

PROGRAM = """
import os
import signal

import numpy

job = os.fork()
if job:
    os.waitpid(job, 0)
    print("killed;", len(os.listdir("/dev/shm")), "left in /dev/shm")
    raise SystemExit

os.setpgid(0, 0)
from multiprocessing.shared_memory import SharedMemory
from torch.utils.data import DataLoader


class Table:
    def __init__(self):
        self.memory = SharedMemory(create=True, size=16 << 20)
        self.values = numpy.ndarray(2 << 20, buffer=self.memory.buf)
        self.values[:] = 1

    def __len__(self):
        return 10

    def __getitem__(self, index):
        return self.values[index]


for batch in DataLoader(Table(), num_workers=2):
    print("training", flush=True)
    os.killpg(0, signal.SIGKILL)
"""


def on_torch(ran: Ran) -> str:
    ran.prints("training", "killed; 1 left in /dev/shm")
    return "16 MB are left in /dev/shm"


def on_holdfast(ran: Ran) -> str:
    ran.prints("training", "killed; 0 left in /dev/shm")
    return "nothing is left: the memory has no name, and goes with the last process"


MEMORY = """        self.memory = SharedMemory(create=True, size=16 << 20)
        self.values = numpy.ndarray(2 << 20, buffer=self.memory.buf)
        self.values[:] = 1
"""
ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="left behind",
    changes={
        "from multiprocessing.shared_memory import SharedMemory\nfrom torch.utils.data import DataLoader\n": (
            "from holdfast import DataLoader, share\n"
        ),
        MEMORY: "        self.values = share(numpy.ones(2 << 20))\n",
    },
    room=Room(shm=64 << 20),
)
