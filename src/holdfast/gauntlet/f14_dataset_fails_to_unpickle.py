"""A data set whose unpickling fails: the worker exited unexpectedly.

It happens before torch's part of the worker runs, so the exception is only printed, and the loop is told of an exit.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.utils.data import DataLoader


class NotMounted(Exception):
    def __init__(self, path, host):
        super().__init__(path, host)
        self.path, self.host = path, host


class Images:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return index

    def __getstate__(self):
        return {"path": "/data"}

    def __setstate__(self, state):
        raise NotMounted(state["path"], "node 7")


if __name__ == "__main__":
    try:
        list(DataLoader(Images(), num_workers=2, multiprocessing_context="forkserver"))
    except Exception as error:
        print(type(error).__name__, vars(error).get("path"), vars(error).get("host"))
        raise
"""


def on_torch(ran: Ran) -> str:
    ran.must("NotMounted /data" not in ran.out, "that the loop sees another error")
    return ran.fails("exited unexpectedly", "EOFError", "ConnectionResetError", "BrokenPipeError")


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.lines == ["NotMounted /data node 7"], "NotMounted in the loop, with its attributes")
    ran.must(ran.status == 1, "an error")
    ran.says("in worker", "__setstate__")
    return "NotMounted is raised in the loop as itself, with the number of the worker"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, patience=20)
