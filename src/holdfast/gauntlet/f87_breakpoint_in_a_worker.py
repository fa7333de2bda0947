"""breakpoint() in a worker ends the run.

The debugger reads from the worker's standard input, which is ``/dev/null``: an end of file, so it quits at once.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os
import pty
import sys

from torch.utils.data import DataLoader


class Numbers:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 5:
            breakpoint()
        return index


def train():
    for batch in DataLoader(Numbers(), batch_size=4, num_workers=1):
        print("batch", *batch.tolist())
    print("trained")


if __name__ == "__main__":
    pid, terminal = pty.fork()
    if not pid:
        train()  # at a terminal
        sys.exit()
    shown, keys = "", ["p index * 111\\n", "c\\n"]  # and this is who sits there
    while True:
        try:
            shown += os.read(terminal, 1024).decode()
        except OSError:
            break
        if keys and shown.endswith(") "):
            os.write(terminal, keys.pop(0).encode())
    print(shown)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def on_torch(ran: Ran) -> str:
    ran.must(bool(ran.status) and "bdb.BdbQuit" in ran.out, "a bad end and bdb.BdbQuit")
    return "bdb.BdbQuit, and the run is over"


def on_holdfast(ran: Ran) -> str:
    ran.ends_well()
    ran.must("(Pdb, worker 0) p index * 111" in ran.lines, "a prompt")
    ran.must("555" in ran.lines and "batch 4 5 6 7" in ran.lines and "trained" in ran.lines, "555, and the whole epoch")
    return "a prompt on the trainer's terminal; the epoch is complete"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
