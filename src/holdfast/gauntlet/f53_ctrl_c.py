"""Ctrl-C prints a traceback for every worker.

The terminal signals the whole group, and each process answers for itself: a worker that is starting, or that waits,
prints where it was.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os
import signal
import threading
import time

import tokenizer
from torch.utils.data import DataLoader


class Texts:
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return tokenizer.tokens(index)


def press_ctrl_c():
    while sum(name.startswith("importing") for name in os.listdir()) < 3:  # this process and both workers
        time.sleep(0.01)
    os.killpg(0, signal.SIGINT)  # what the terminal does


if __name__ == "__main__":
    print("starting")
    threading.Thread(target=press_ctrl_c, daemon=True).start()
    for batch in DataLoader(Texts(), num_workers=2, multiprocessing_context="spawn"):
        time.sleep(0.1)
"""
TOKENIZER = """
import os
import time

open(f"importing in {os.getpid()}", "w").close()
time.sleep(1)  # a large library


def tokens(index):
    return index
"""


def on_torch(ran: Ran) -> str:
    tracebacks = ran.err.count("Traceback (most recent call last)")
    ran.must(tracebacks > 1, "more than one traceback")
    return f"{tracebacks} tracebacks"


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.lines == ["starting"] and ran.status == -2, "an end by SIGINT")
    ran.must(ran.err.count("Traceback (most recent call last)") == 1, "one traceback")
    ran.must(ran.err.rstrip().endswith("KeyboardInterrupt"), "KeyboardInterrupt as the last word")
    return "one traceback: the trainer's"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, files={"tokenizer.py": TOKENIZER}, patience=20)
