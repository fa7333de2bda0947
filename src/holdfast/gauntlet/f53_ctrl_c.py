"""Ctrl-C prints a traceback for every worker.

The terminal signals the whole group, and each process answers for itself.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os
import signal
import threading

from torch.utils.data import DataLoader


class Images:
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return index


if __name__ == "__main__":
    print("starting")
    threading.Timer(0.5, os.killpg, (0, signal.SIGINT)).start()  # what the terminal does
    for batch in DataLoader(Images(), num_workers=2, multiprocessing_context="spawn"):
        threading.Event().wait(0.1)
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


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast)
