"""What tasks do in the tests, by name. Those that wait do so for a file, which another task or the test makes."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy

import holdfast

SQUARES = [number * number for number in range(10)]


def square(number: int) -> int:
    return number * number


def make(path: Path, text: str = "") -> None:
    """At once: whoever sees it sees all of it."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def await_file(path: Path) -> str:
    while not path.exists():
        time.sleep(0.005)
    return path.read_text()


def meet(folder: Path, number: int, others: int) -> int:
    """The pid of a worker, when all the others are at work too."""
    make(folder / f"met {number}")
    for other in range(others):
        await_file(folder / f"met {other}")
    return os.getpid()


def wait_for(path: Path, number: int = 0) -> int:
    make(path.with_name(f"began {number}"), str(os.getpid()))
    await_file(path)
    return number * number


# -- leaving in the middle of a task ---------------------------------------------------------------


def crash() -> None:
    ctypes.string_at(0)


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt() -> None:
    raise KeyboardInterrupt


def leave_at(number: int, last: int, how: str = "SIGKILL", once: Path | None = None) -> int:
    """The square of a number, but for the last one: that ends the worker, or does so the first time."""
    if number == last and not (once and once.exists()):
        if once:
            make(once)
        LEAVING[how]()
    return number * number


LEAVING = {
    "SIGKILL": kill_itself,
    "SIGSEGV": crash,
    "os._exit(0)": lambda: os._exit(0),
    "os._exit(3)": lambda: os._exit(3),
    "sys.exit()": lambda: sys.exit(),
    "sys.exit(3)": lambda: sys.exit(3),
    "KeyboardInterrupt": interrupt,
    "exception": lambda: fail("no luck"),
}


def fail(words: str) -> None:
    raise ValueError(words)


def initialize(how: str, once: Path | None = None) -> None:
    leave_at(0, 0, how, once)


# -- what does not travel --------------------------------------------------------------------------


class Locked(Exception):
    """Cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("it holds a lock")
        self.lock = threading.Lock()


class Unlucky(Exception):
    """Needs two arguments, of which pickle keeps one."""

    def __init__(self, step: int, reason: str) -> None:
        super().__init__(f"step {step}: {reason}")
        self.step = step


class Unreadable(Exception):
    """Can be pickled, and cannot be unpickled."""

    def __reduce__(self) -> Any:
        return fail, ("not here",)


def raise_locked() -> None:
    raise Locked


def raise_unlucky() -> None:
    raise Unlucky(7, "no data")


def raise_unreadable() -> None:
    raise Unreadable("as it was there")


def return_lock() -> Any:
    return {"deep": [1, threading.Lock()]}


class Arrives:
    """Does something when it is unpickled."""

    def __init__(self, how: str) -> None:
        self.how = how

    def __getstate__(self) -> dict[str, str]:
        return {"how": self.how}

    def __setstate__(self, state: dict[str, str]) -> None:
        LEAVING[state["how"]]()


def return_arrival(how: str) -> Arrives:
    return Arrives(how)


class DiesWhenSent:
    def __reduce__(self) -> Any:
        kill_itself()


def return_half(size: int) -> Any:
    """The worker is killed when half of it has been written."""
    return numpy.ones(size // 2, numpy.uint8), b"x" * (size // 2), DiesWhenSent()


def return_much(size: int, path: Path) -> Any:
    result = b"x" * size, numpy.ones(size, numpy.uint8)
    make(path, str(os.getpid()))
    return result


class Tracked:
    """Tells whether it is still there."""

    latest: weakref.ref[Tracked] | None = None


def return_tracked() -> Tracked:
    gc.disable()  # it has to go by itself
    tracked = Tracked()
    Tracked.latest = weakref.ref(tracked)
    return tracked


def is_tracked_there() -> bool:
    return Tracked.latest is not None and Tracked.latest() is not None


# -- never ending ----------------------------------------------------------------------------------


def spin() -> None:
    while True:
        pass  # here it spins


def sleep_in_c() -> None:
    """Holds the lock of the interpreter, so no Python code runs, that of a signal handler neither."""
    ctypes.PyDLL(None).sleep(1000)


def block_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(1000)


def swallow() -> None:
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            pass


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def ignore_term() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1000)


NEVER_ENDING = {
    "spins": spin,
    "sleeps": lambda: time.sleep(1000),
    "holds the interpreter": sleep_in_c,
    "blocks signals": block_signals,
    "swallows exceptions": swallow,
    "is stopped": stop,
    "ignores SIGTERM": ignore_term,
}


def never_end(how: str, path: Path | None = None) -> None:
    if path:
        make(path, str(os.getpid()))
    NEVER_ENDING[how]()


# -- pools in tasks --------------------------------------------------------------------------------


def squares_of_a_pool(count: int) -> list[int]:
    with holdfast.Pool(2) as pool:
        return pool.map(square, range(count))
