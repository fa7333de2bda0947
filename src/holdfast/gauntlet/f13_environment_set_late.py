"""An environment variable that is set late is not seen by the workers.

They are forks of a server that was started with the first loader and has the environment and the directory of that
moment.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os

from torch.utils.data import DataLoader


class Roots:
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return f"{os.environ.get('DATA_ROOT')} {os.getcwd()}"


if __name__ == "__main__":
    loader = DataLoader(Roots(), num_workers=1, multiprocessing_context="forkserver")
    list(loader)
    os.environ["DATA_ROOT"] = "/data"
    os.chdir("/")
    print(list(loader)[0][0])
"""


def on_torch(ran: Ran) -> str:
    ran.ends_well()
    ran.must(ran.out.startswith("None"), "a variable that is not set")
    return f"the workers see DATA_ROOT={ran.out.strip().split()[0]}"


def on_holdfast(ran: Ran) -> str:
    ran.prints("/data /")
    ran.is_silent()
    return "environment and directory are those of the trainer when the epoch starts"


ROW = Row(__name__, __doc__, PROGRAM, on_torch, on_holdfast, patience=20)
