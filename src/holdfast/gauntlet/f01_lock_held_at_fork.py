"""The loop never starts: another thread of the trainer held a lock when the workers were forked.

A fork copies memory as it is, with every lock that any thread holds at that moment, but not the thread that would
release it. The lock may be in a library, as here, or in its C code.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import threading

import decoder
from torch.utils.data import DataLoader


class Images:
    def __len__(self):
        return 20

    def __getitem__(self, index):
        return decoder.decode(index)


def preview():
    with decoder.lock:
        busy.set()
        threading.Event().wait()


busy = threading.Event()
threading.Thread(target=preview, daemon=True).start()
busy.wait()
print("loading")
print([int(batch) for batch in DataLoader(Images(), num_workers=2)])
"""


DECODER = """
import threading

lock = threading.Lock()


def decode(index):
    with lock:
        return index
"""


def on_torch(ran: Ran) -> str:
    return ran.hangs()


def on_holdfast(ran: Ran) -> str:
    ran.prints("loading", str(list(range(20))))
    ran.is_silent()
    return "works: workers are no forks of the trainer"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, variant="a lock", files={"decoder.py": DECODER})
