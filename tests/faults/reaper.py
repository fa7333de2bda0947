"""A warm process that starts trainers and kills them: as a program it is that process, as a module it talks to it.

torch takes seconds to import, and hundreds of trainers would take as many times that. These are forks of a process that
has imported it, each in a session of its own. Orphans become children of this process, so none can escape its count.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from trainers import wait_until

PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 10.0  # seconds that workers have to notice that their trainer is gone; a second is promised
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # or it would not be safe to fork


@dataclass(frozen=True)
class Death:
    """How a trainer ended; and how many of those that it had started did not."""

    status: int
    orphans: int
    seconds: float
    """How long the last of them took to end."""


class Reaper:
    """Owns the warm process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def live(self, told: str, folder: Path, batches: int | None = None, delay: float = 0.0) -> Death:
        """Run a trainer (`mortals.Life.told`) and kill it ``delay`` seconds after so many batches, or let it end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([told, str(folder), batches, delay]), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, "the process that starts trainers has ended"
        return Death(*json.loads(answer))


@contextmanager
def reaper() -> Iterator[Reaper]:
    """Without its input it ends."""
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **ONE_THREAD},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        # A child that sleeps is told from one that runs, by those who look for children that were left.
        wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_SLEEPING)
        yield Reaper(process)
    finally:
        process.communicate(timeout=60)


# -- the process ---------------------------------------------------------------------------------


def main() -> None:
    import mortals

    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    print("ready", flush=True)
    for line in sys.stdin:
        told, folder, batches, delay = json.loads(line)
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(ours)
            be_born(mortals.Life(**json.loads(told)), Path(folder), theirs)
        os.close(theirs)
        status = end(pid, ours, batches, delay)
        os.close(ours)
        print(json.dumps([status, *bury()]), flush=True)


def be_born(life, folder: Path, beats: int) -> None:
    """As a program that a shell has started. It does not return."""
    import mortals

    status = 1
    try:
        os.setsid()
        said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for fd in (1, 2):
            os.dup2(said, fd)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        mortals.train(life, folder, lambda: os.write(beats, b"."))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def end(pid: int, beats: int, batches: int | None, delay: float) -> int:
    """The trainer's status. It is killed while it does what it happens to do ``delay`` seconds after that batch."""
    pidfd = os.pidfd_open(pid)
    while batches is not None and batches > 0 and (heard := os.read(beats, batches)):
        batches -= len(heard)
    if batches is not None and not select.select([pidfd], [], [], delay)[0]:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    os.close(pidfd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def bury() -> tuple[int, float]:
    """Wait for all that the trainer left; how many there still are, and for how long the others were."""
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.002)
        except ChildProcessError:
            return 0, time.monotonic() - began
    return len(psutil.Process().children(recursive=True)), PATIENCE


if __name__ == "__main__":
    main()
