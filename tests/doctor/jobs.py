"""Jobs to be looked at: ``python jobs.py KIND LOADER``.

The trainer says ``ready`` when it is about to wait, and a worker says ``there`` when it is about to stand still.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from itertools import repeat
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset

from holdfast._system import proc

LOCK = threading.Lock()
GUILTY = 5  # the sample at which it happens


def say(line: str) -> None:
    """In one piece: without a buffer, `print` writes a line and its end one after the other, and others speak too."""
    os.write(1, f"{line}\n".encode())


class Numbers(Dataset[Any]):
    """Sample i is i; at one of them something happens first."""

    def __init__(self, size: int = 32) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == GUILTY:
            say("there")
            self.happens()
        return torch.tensor(index)

    def happens(self) -> None: ...


class Receives(Numbers):
    def __init__(self, port: int) -> None:
        super().__init__()
        self.port = port

    def happens(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.recv(1)  # the line: recv


class Locks(Numbers):
    """Takes a lock that it has: what a worker meets that was forked while another thread held it."""

    def happens(self) -> None:
        if not LOCK.locked():
            LOCK.acquire()
        LOCK.acquire()  # the line: lock


class Loops(Numbers):
    def happens(self) -> None:
        sum(repeat(0))  # the line: loop


class Stops(Numbers):
    def happens(self) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)  # the line: stop


class Sleeps(Numbers):
    def happens(self) -> None:
        time.sleep(1000)  # the line: sleep


class Dies(Numbers):
    """At a moment when the trainer does not listen any more."""

    def happens(self) -> None:
        while not proc.ignores(os.getppid(), signal.SIGCHLD):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)


class Slow(Numbers):
    """Gets on all the time, and no batch comes for seconds."""

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.2)
        return torch.tensor(index)


class Steady(Numbers):
    """Ends when it is told to, by a file."""

    def __init__(self, path: str) -> None:
        super().__init__(size=200)
        self.path = path

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.01)
        while index == self.size - 1 and not Path(self.path).exists():
            time.sleep(0.01)
        return torch.randint(1 << 20, ()) + index


def asleep(number: int) -> int:
    if number == GUILTY:
        say("there")
        time.sleep(1000)  # the line: task
    return number


def hold(lock: threading.Lock) -> None:
    with lock:
        time.sleep(1000)


def loader(which: str, dataset: Numbers, **options: Any) -> Any:
    if which == "holdfast":
        import holdfast

        return holdfast.DataLoader(dataset, batch_size=4, num_workers=2, **options)
    from torch.utils.data import DataLoader

    return DataLoader(dataset, batch_size=4, num_workers=2, **options)


def load(which: str, dataset: Numbers, **options: Any) -> None:
    torch.manual_seed(7)
    batches = iter(loader(which, dataset, **options))
    if isinstance(dataset, Dies):
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # now: torch has set its own a moment ago
    total = int(next(batches).sum())
    say("ready")
    for batch in batches:  # the line: next
        total += int(batch.sum())
    say(f"total {total}")


def compute(which: str) -> None:
    batches = iter(loader(which, Numbers()))
    next(batches)
    say("ready")
    while True:
        sum(range(10_000))  # the line: compute


def wait(which: str, port: int) -> None:
    batches = iter(loader(which, Numbers()))
    next(batches)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        say("ready")
        connection.recv(1)  # the line: trainer


def pool(which: str) -> None:
    if which == "holdfast":
        import holdfast

        made: Any = holdfast.Pool(2)
    else:
        import multiprocessing

        made = multiprocessing.Pool(2)
    with made:
        made.map(asleep, range(4), chunksize=1)
        say("ready")
        made.map(asleep, range(8), chunksize=1)  # the line: map


def ranks() -> None:
    import torch.distributed

    torch.distributed.init_process_group("gloo")
    torch.distributed.all_reduce(torch.ones(1))
    say("ready")
    if os.environ["RANK"] == "1":
        time.sleep(1000)  # the line: late
    torch.distributed.all_reduce(torch.ones(1))  # the line: all


def main(kind: str, which: str, *more: str) -> None:
    match kind:
        case "recv":
            load(which, Receives(int(more[0])))
        case "lock":
            threading.Thread(target=hold, args=(LOCK,), daemon=True).start() if which == "torch" else None
            load(which, Locks())
        case "loop" | "stop" | "sleep" | "dies":
            load(which, {"loop": Loops, "stop": Stops, "sleep": Sleeps, "dies": Dies}[kind]())
        case "slow":
            load(which, Slow(size=1000))
        case "steady":
            load(which, Steady(more[0]))
        case "compute":
            compute(which)
        case "trainer":
            wait(which, int(more[0]))
        case "pool":
            pool(which)
        case "ranks":
            ranks()


if __name__ == "__main__":
    main(*sys.argv[1:])
