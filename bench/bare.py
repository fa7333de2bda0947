"""Two processes with no loader at all: the most that two workers could do with this work."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable

from bench.harness import WORKERS


def seconds_for(work: Callable[[int], Callable[[], None]]) -> float:
    """Wall time of `WORKERS` forked processes. `work(number)` prepares in the child; what it returns is timed.

    The children start together, when all have prepared; their start is not part of the time.
    """
    ready_read, ready_write = os.pipe()
    go_read, go_write = os.pipe()
    children = []
    for number in range(WORKERS):
        pid = os.fork()
        if pid == 0:
            os._exit(_child(work, number, ready_write, go_read))
        children.append(pid)
    os.close(ready_write)
    os.close(go_read)
    try:
        waiting = WORKERS
        while waiting:
            arrived = len(os.read(ready_read, waiting))
            if not arrived:
                raise RuntimeError("a bare process ended before it was ready")
            waiting -= arrived
        start = time.perf_counter()
        os.write(go_write, b"g" * WORKERS)
        statuses = [os.waitpid(pid, 0)[1] for pid in children]
        seconds = time.perf_counter() - start
    finally:
        os.close(ready_read)
        os.close(go_write)
    if any(statuses):
        raise RuntimeError(f"a bare process failed: wait statuses {statuses}")
    return seconds


def _child(work: Callable[[int], Callable[[], None]], number: int, ready_write: int, go_read: int) -> int:
    try:
        run = work(number)
        os.write(ready_write, b"r")
        os.close(ready_write)
        if not os.read(go_read, 1):
            return 1
        run()
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
