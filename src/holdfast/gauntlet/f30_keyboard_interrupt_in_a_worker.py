"""A KeyboardInterrupt that is raised in a worker arrives as something else, or as an empty EOFError.

torch's worker takes it for Ctrl-C in the terminal, which the trainer would have heard too, and leaves without a word.
A library that raises it by itself ends the run so.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.utils.data import DataLoader


class Images:
    def __len__(self):
        return 40

    def __getitem__(self, index):
        if index == 17:
            raise KeyboardInterrupt  # as a library with a signal handler of its own does
        return index


for batch in DataLoader(Images(), batch_size=4, num_workers=2):
    print(*batch.tolist())
"""


def on_torch(ran: Ran) -> str:
    ran.must("KeyboardInterrupt" not in ran.err, "that nobody says KeyboardInterrupt")
    return ran.fails("EOFError", "FileNotFoundError", "ConnectionResetError", "exited unexpectedly")


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.lines == ["0 1 2 3", "4 5 6 7", "8 9 10 11", "12 13 14 15"], "four batches, then the error")
    ran.must(ran.status == 1, "an error")
    ran.says("KeyboardInterrupt", "HF201")
    return ran.says("while it loaded sample 17 of batch 4")


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, variant="KeyboardInterrupt", patience=12)
