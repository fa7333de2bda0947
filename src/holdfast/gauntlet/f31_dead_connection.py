"""A worker waits for a connection that is dead: silence, for ever.

A read from a socket has no time limit unless somebody sets one. The trainer waits for the batch, the worker for the
server, and nothing is printed.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import socket

from torch.utils.data import DataLoader

server = socket.create_server(("127.0.0.1", 0))
address = server.getsockname()


class Images:
    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == 5:
            with socket.create_connection(address) as connection:
                connection.recv(1)  # no answer comes
        return index


print("loading")
for batch in DataLoader(Images(), batch_size=2, num_workers=2):
    print(*batch.tolist())
"""


def on_torch(ran: Ran) -> str:
    return ran.hangs()


def on_holdfast(ran: Ran) -> str:
    ran.must(ran.lines == ["loading", "0 1", "2 3"] and ran.status == 1, "two batches, then an error")
    ran.says("HF205", "recv", "127.0.0.1", 'program.py", line 16 in __getitem__')
    return ran.says("made no progress for", "sample 5 of batch 2")


ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    variant="a dead connection",
    changes={"num_workers=2)": "num_workers=2, stall_timeout=1)"},
)
