"""Programs that use pools, run as processes of their own, and the ends of processes as events."""

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
from pathlib import Path

HERE = Path(__file__).parent
HEAD = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from pathlib import Path
import deeds
from holdfast import Executor, Pool
"""
LIMIT = 40.0  # seconds: what any program here may take before it counts as hung


def program(folder: Path, code: str) -> Path:
    path = folder / "program.py"
    path.write_text(textwrap.dedent(code))
    return path


@contextmanager
def started(folder: Path, code: str) -> Iterator[subprocess.Popen[str]]:
    """In a session of its own, so that a signal to its group is none to ours; its group is ended with the block."""
    process = subprocess.Popen(
        [sys.executable, "-W", "default::ResourceWarning", program(folder, code)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that runs the tests in the background has them ignore Ctrl-C, and programs inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def run(folder: Path, code: str) -> str:
    """What it prints, if it ends well and says nothing on stderr."""
    with started(folder, code) as process:
        out, err = process.communicate(timeout=LIMIT)
        assert (process.returncode, err) == (0, "")
        return out


class Ends:
    """Waits for processes to end by their pidfds, which cannot be mistaken for a later process with that number."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._fds = [os.pidfd_open(pid) for pid in pids]

    def come(self, limit: float) -> bool:
        """All of them, within the limit."""
        deadline = time.monotonic() + limit
        left = [fd for fd in self._fds if not select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]]
        for fd in self._fds:
            os.close(fd)
        return not left
