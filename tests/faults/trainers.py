"""Programs as users write them, run as processes of their own, and the ends of processes as events."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from holdfast._system import proc

LIMIT = 60.0  # seconds: what any program here may take before it counts as hung


@dataclass
class Ran:
    """How a program ended. ``status`` is None when it had not by the time limit and was killed."""

    status: int | None
    out: str
    err: str
    seconds: float

    @property
    def hung(self) -> bool:
        return self.status is None

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def ok(self) -> Ran:
        """Ended well and said nothing on stderr but what the ledger tells of faults that were survived."""
        assert self.status == 0, f"status {self.status} after {self.seconds:.1f} s\n{self.out}\n{self.err}"
        assert [line for line in self.err.splitlines() if not line.startswith("holdfast: ")] == []
        return self


def script(folder: Path, source: str, name: str = "train.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(source))
    return path


def run(
    *command: str | Path, limit: float = LIMIT, given: str | None = None, flags: Iterable[str] = (), **env: str
) -> Ran:
    """Python with these arguments. A program over the limit is killed with all its children."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *flags, *map(str, command)],
        stdin=subprocess.PIPE if given is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
        start_new_session=True,
        preexec_fn=hear_interrupts,
    )
    status: int | None
    try:
        out, err = process.communicate(given, timeout=limit)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        status = None
    return Ran(status, out, err, time.monotonic() - began)


@dataclass
class Trainer:
    """A program that is running, in a session of its own."""

    process: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        """The next line it prints."""
        assert self.process.stdout is not None
        text = self.process.stdout.readline().rstrip("\n")
        assert text, f"it ended instead: {self.finish()}"
        self.said.append(text)
        return text

    def waits(self) -> bool:
        """Whether it has nothing to do, and would be woken by a worker."""
        call = proc.look(self.pid).call
        return call is not None and call.name in ("poll", "ppoll")

    def interrupt(self) -> None:
        """Ctrl-C, as a terminal does it: the whole group is signalled."""
        os.killpg(self.pid, signal.SIGINT)

    def finish(self, limit: float = LIMIT) -> Ran:
        began = time.monotonic()
        out, err = self.process.communicate(timeout=limit)
        return Ran(self.process.returncode, "\n".join([*self.said, out]), err, time.monotonic() - began)


def hear_interrupts() -> None:
    """A shell that runs the tests in the background has them ignore Ctrl-C, and programs inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def started(*command: str | Path, **env: str) -> Iterator[Trainer]:
    process = subprocess.Popen(
        [sys.executable, *map(str, command)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
        start_new_session=True,
        preexec_fn=hear_interrupts,
    )
    try:
        yield Trainer(process)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def family(pid: int) -> list[int]:
    """Everything that this process started, and what those started."""
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


class Ends:
    """Waits for processes to end by their pidfds, which cannot be mistaken for a later process with that number."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._fds = {}
        for pid in pids:
            try:
                self._fds[os.pidfd_open(pid)] = pid
            except ProcessLookupError:
                pass

    def wait(self, limit: float) -> list[int]:
        """Until all have ended; the pids of those that have not by then."""
        deadline = time.monotonic() + limit
        for fd in list(self._fds):
            if select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
                del self._fds[fd]
                os.close(fd)
        left = list(self._fds.values())
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
        return left


def ended(pid: int, limit: float = 10.0) -> bool:
    return not Ends([pid]).wait(limit)


def wait_until(condition, limit: float = 20.0) -> None:
    """For conditions of the world that no descriptor tells of."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)
