"""A task that never ends keeps its worker for good: `get(timeout=...)` only stops waiting.

Two of them, and a pool of two workers does nothing any more. To end them there is `terminate`, which ends all.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
from torch.multiprocessing import Pool, TimeoutError
from torch.utils.data import DataLoader


def read(number):
    while number in (1, 2):  # a lock that nobody gives back, a server that does not answer
        pass
    return number


if __name__ == "__main__":
    print("reading", flush=True)
    with Pool(2) as pool:
        results = [pool.apply_async(read, (int(number),)) for number in DataLoader(range(6))]
        for result in results:
            try:
                print(result.get(timeout=3))
            except TimeoutError as error:
                print("too late", error)
"""


def on_torch(ran: Ran) -> str:
    ran.ends_well()
    ran.must(ran.lines[1:] == ["0", *["too late "] * 5], "that everything behind them is too late")
    return "two tasks without end, and the three behind them are never done"


def on_holdfast(ran: Ran) -> str:
    ran.ends_well()
    late = [f"too late read({number}) took longer than its 1 s [HF902]" for number in (1, 2)]
    told = [line for line in ran.lines[1:] if line.isdigit() or line.startswith("too late")]
    ran.must(told == ["0", *late, "3", "4", "5"], "two errors, and four results")
    return "read(1) took longer than its 1 s; all others are done"


IMPORTS = "from torch.multiprocessing import Pool, TimeoutError\nfrom torch.utils.data import DataLoader\n"
ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={
        IMPORTS: "from holdfast import DataLoader, Pool\n",
        "Pool(2)": "Pool(2, task_timeout=1)",
        "result.get(timeout=3)": "result.get()",
    },
    patience=30,
)
