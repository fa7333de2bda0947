"""One worker is killed, and the results of all tasks are lost: BrokenProcessPool.

The executor cannot tell whose task the dead worker had, so it fails everything, and will take no more.
"""

from __future__ import annotations

from .row import Ran, Row

PROGRAM = """
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor

from torch.utils.data import DataLoader


def resize(number):
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when memory runs out
    time.sleep(0.05)
    return number


if __name__ == "__main__":
    with ProcessPoolExecutor(2) as executor:
        futures = [executor.submit(resize, number) for number in range(20)]
    images = [future.result() for future in futures if not future.exception()]
    print(*[number for batch in DataLoader(images) for number in batch.tolist()])
    print(*{str(future.exception()).splitlines()[0] for future in futures if future.exception()})
"""

DONE = " ".join(str(number) for number in range(20) if number != 7)


def on_torch(ran: Ran) -> str:
    ran.ends_well()
    done, reasons = ran.lines[0].split(), ran.lines[1]
    ran.must(len(done) < 19 and "terminated abruptly" in reasons, "results that are lost")
    return f"{len(done)} of 19 results: {reasons}"


def on_holdfast(ran: Ran) -> str:
    ran.ends_well()
    ran.must(ran.lines[0] == DONE, "all results but one")
    ran.must(ran.lines[1].endswith("was killed by SIGKILL in resize(7) [HF901]"), "the reason of the other")
    return "19 of 19 results; the task that ended its worker fails alone, with the reason"


IMPORTS = "from concurrent.futures import ProcessPoolExecutor\n\nfrom torch.utils.data import DataLoader\n"
ROW = Row(
    __name__,
    __doc__,
    PROGRAM,
    on_torch,
    on_holdfast,
    changes={
        IMPORTS: "\nfrom holdfast import DataLoader, Executor\n",
        "with ProcessPoolExecutor(2)": "with Executor(2)",
    },
    patience=20,
)
