"""What ranks do in the tests, by name. Those that wait do so for a file, which another rank or the test makes."""

from __future__ import annotations

import atexit
import ctypes
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy
import torch
from torch.utils.data import get_worker_info


class Unlucky(Exception):
    """One that needs two arguments, and keeps something beside them."""

    def __init__(self, step: int, reason: str) -> None:
        super().__init__(f"step {step}: {reason}")
        self.step = step


class SlowToTell(Exception):
    """Takes as long to be pickled as another process lives."""

    def __init__(self, folder: Path) -> None:
        super().__init__("the cause")
        self.folder = folder

    def __reduce__(self):
        if not (self.folder / "told").exists():
            make(self.folder / "failing")
            await_file(self.folder / "told")
        return SlowToTell, (self.folder,)


def make(path: Path, text: str = "") -> None:
    """At once: whoever sees it sees all of it. Several ranks may make the same."""
    new = path.with_suffix(f".{os.getpid()}")
    new.write_text(text)
    new.rename(path)


def await_file(path: Path) -> None:
    while not path.exists():
        time.sleep(0.005)


def for_ever() -> None:
    while True:
        time.sleep(60)


def returns(rank: int, base: torch.Tensor) -> tuple[int, torch.Tensor, str]:
    return rank, base + rank, multiprocessing.current_process().name


# -- leaving early: rank 1 does, and the others would never end ------------------------------------


def leave(rank: int, how: str, folder: Path) -> None:
    if rank != 1:
        make(folder / f"pid {rank}", str(os.getpid()))
        for_ever()
    await_file(folder / "pid 0")
    LEAVING[how]()
    for_ever()


def _crash() -> None:
    ctypes.string_at(0)


def _fail() -> None:
    raise Unlucky(7, "no data")


def _use_up_time() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1, 100))
    while True:
        pass


def _speak_and_die() -> None:
    print("the last words", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def _fail_and_stay() -> None:
    threading.Thread(target=for_ever).start()
    raise Unlucky(7, "no data")


class Locked(Exception):
    def __init__(self) -> None:
        super().__init__("it holds a lock")
        self.lock = threading.Lock()


def _fail_with_a_lock() -> None:
    raise Locked


def _raise_interrupt() -> None:
    raise KeyboardInterrupt


LEAVING = {
    "sys.exit(0)": lambda: sys.exit(0),
    "sys.exit()": lambda: sys.exit(),
    "sys.exit(3)": lambda: sys.exit(3),
    "sys.exit(words)": lambda: sys.exit("no such file"),
    "os._exit(0)": lambda: os._exit(0),
    "SIGINT": lambda: os.kill(os.getpid(), signal.SIGINT),
    "KeyboardInterrupt": _raise_interrupt,
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "crash": _crash,
    "exception": _fail,
    "exception with a lock": _fail_with_a_lock,
    "limit": _use_up_time,
    "last words": _speak_and_die,
    "exception, and a thread": _fail_and_stay,
}


# -- who was first ---------------------------------------------------------------------------------


def fail_in_turn(rank: int, folder: Path) -> None:
    """Rank 1 fails first and is slow to tell; rank 0 fails because of it, and is heard of first."""
    if rank == 1:
        raise SlowToTell(folder)
    await_file(folder / "failing")
    atexit.register(make, folder / "told")  # when it has told
    raise ConnectionError("rank 1 is gone")


def crash_in_turn(rank: int, folder: Path) -> None:
    """Rank 1 fails, and rank 0 is aborted because of it, as by the watchdog of a collective, before rank 1 has told."""
    if rank == 1:
        raise SlowToTell(folder)
    await_file(folder / "failing")
    subprocess.Popen(["sh", "-c", f"sleep 0.02; touch '{folder}/told'"])
    os.abort()


def die_in_turn(rank: int, folder: Path) -> None:
    """Rank 1 is killed, and rank 0 fails because of it."""
    if rank == 1:
        make(folder / "pid", str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    await_file(folder / "pid")
    pid = int((folder / "pid").read_text())
    while _runs(pid):
        time.sleep(0.005)
    atexit.register(make, folder / "both")
    raise ConnectionError("rank 1 is gone")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


# -- being ended -----------------------------------------------------------------------------------


def one_fails(rank: int, folder: Path, on_term: str) -> None:
    if rank == 1:
        await_file(folder / "ready")
        raise Unlucky(7, "no data")
    if on_term == "cleans up":
        signal.signal(signal.SIGTERM, lambda *_: (make(folder / "clean"), sys.exit(0)))
    elif on_term == "is killed":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        make(folder / "ready")
        while signal.SIGTERM not in signal.sigpending():
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGKILL)
    elif on_term == "ignores":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    make(folder / "ready")
    if on_term == "ends by itself":
        time.sleep(0.2)
        make(folder / "clean")
        return
    for_ever()


def interrupt(rank: int, pid: int) -> None:
    if rank == 0:
        os.kill(pid, signal.SIGINT)
    for_ever()


def wait_for(rank: int, folder: Path) -> int:
    make(folder / f"began {rank}", str(os.getpid()))
    await_file(folder / "go")
    return rank


def mark(rank: int, folder: Path) -> None:
    await_file(folder / "go")
    make(folder / f"done {rank}")


def tidy(rank: int, folder: Path) -> None:
    """Marks Ctrl-C."""
    try:
        make(folder / f"began {rank}")
        for_ever()
    except KeyboardInterrupt:
        make(folder / f"tidy {rank}")
        raise


def at_exit(rank: int, folder: Path, status: int) -> None:
    atexit.register(make, folder / f"exit {rank}")
    if status:
        atexit.register(os._exit, status)


# -- what they find --------------------------------------------------------------------------------


def surroundings(rank: int) -> dict[str, object]:
    return {
        "cores": os.sched_getaffinity(0),
        "threads": torch.get_num_threads(),
        "worker": get_worker_info(),
        "seed": torch.initial_seed(),
        "random": (random.random(), numpy.random.rand()),
        "argv": sys.argv,
        "folder": os.getcwd(),
        "parent": multiprocessing.parent_process().is_alive(),
        "sigterm": signal.getsignal(signal.SIGTERM),
    }


def environ(rank: int) -> dict[str, str]:
    return dict(os.environ)


def all_reduce(rank: int) -> float:
    torch.distributed.init_process_group("gloo")
    total = torch.tensor([float(rank + 1)])
    torch.distributed.all_reduce(total)
    torch.distributed.destroy_process_group()
    return total.item()


def shared(rank: int, tensor: torch.Tensor, private: torch.Tensor, queue) -> None:
    tensor[rank] = rank + 1
    private[rank] = rank + 1
    queue.put(rank)


def returns_a_lock(rank: int):
    return threading.Lock() if rank else "fine"


class FailsToArrive:
    def __reduce__(self):
        return _refuse, ()


def _refuse() -> None:
    raise Unlucky(0, "not here")


# -- printing --------------------------------------------------------------------------------------


def prints(rank: int) -> None:
    print(f"one of {rank}")
    os.write(1, b"two, from C\n")
    print("ouch", file=sys.stderr)
    print(f"bar {rank}\rbar {rank}!\r\n", end="")
    print("no end", end="")


def prints_much(rank: int, lines: int) -> None:
    for line in range(lines):
        print(rank, line, "x" * 100)


def prints_and_dies(rank: int) -> None:
    for line in range(1000):
        print(line)
    os.kill(os.getpid(), signal.SIGKILL)
