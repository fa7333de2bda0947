"""Two libraries set the start method: context has already been set.

It is one setting for the whole program, it can be made once, and torch's advice after "Cannot re-initialize CUDA in
forked subprocess" is to make it.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import multiprocessing
import os

from torch.utils.data import DataLoader


class Parents:
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return os.getppid() == trainer  # so it is a fork of it


trainer = os.getpid()
multiprocessing.set_start_method("fork")  # a library, on import
multiprocessing.set_start_method("forkserver")  # this program, as it uses CUDA
print([bool(batch) for batch in DataLoader(Parents(), num_workers=2)])
print(multiprocessing.get_start_method())
"""


def on_torch(ran: Ran) -> str:
    return ran.fails("context has already been set")


def on_holdfast(ran: Ran) -> str:
    ran.prints("[False, False, False, False]", "fork")
    ran.is_silent()
    return "nothing to set: clean workers, and the library's setting is left alone"


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={'multiprocessing.set_start_method("forkserver")  # this program, as it uses CUDA\n': ""},
)
