"""Starting the jobs of ``jobs.py``, and waiting until they stand still."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast._system import proc, stacks

JOBS = Path(__file__).with_name("jobs.py")
PATIENCE = 60.0  # seconds for a job to get so far, on a machine that has other things to do


def line_of(mark: str) -> str:
    """``jobs.py:46``: where the jobs have this mark."""
    lines = JOBS.read_text().splitlines()
    return f"jobs.py:{next(at for at, line in enumerate(lines, 1) if line.endswith(f'# the line: {mark}'))}"


@contextmanager
def job(*arguments: object, says: tuple[str, ...] = ("ready",)) -> Iterator[subprocess.Popen[str]]:
    """One of ``jobs.py``."""
    with job_of([sys.executable, str(JOBS), *map(str, arguments)], says) as process:
        yield process


@contextmanager
def job_of(command: list[str], says: tuple[str, ...]) -> Iterator[subprocess.Popen[str]]:
    """A job in a session of its own, from the moment when it has said all of this, in any order."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=JOBS.parent)
    try:
        wait_for_lines(process, says)
        yield process
    finally:
        with suppress(ProcessLookupError):  # it has ended by itself
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for_lines(process: subprocess.Popen[str], lines: tuple[str, ...]) -> None:
    assert process.stdout is not None
    missing = Counter(lines)
    while missing:
        with said_where(process, PATIENCE):
            line = process.stdout.readline()
        assert line, f"it ended before it said {missing}"
        missing -= Counter([line.strip()])


@contextmanager
def said_where(process: subprocess.Popen[str], seconds: float) -> Iterator[None]:
    """If this takes longer, the stacks of the job and its workers are printed, and the job is ended."""

    def tell() -> None:
        for pid in (process.pid, *workers(process.pid)):
            with suppress(stacks.Unseen):
                print(pid, *stacks.py_spy(pid), sep="\n")
        os.killpg(process.pid, signal.SIGKILL)

    late = threading.Timer(seconds, tell)
    late.start()
    try:
        yield
    finally:
        late.cancel()
        late.join()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def is_in(pid: int, *calls: str) -> bool:
    """Whether its main thread is in one of these system calls."""
    call = proc.look(pid).call
    return call is not None and call.name in calls


def workers(pid: int) -> list[int]:
    """Of torch: its children of that name."""
    return [int(child.split()[0]) for child in proc.children(pid) if "pt_data_worker" in child]
