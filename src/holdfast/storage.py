"""Storage that comes late: ``wait_for`` a mount, a download, another node's file."""

from __future__ import annotations

import logging
import os
import subprocess
import threading
import time
from pathlib import Path

from ._system import child
from ._system.interpreter import command, deaf_to_interrupts
from .errors import NotThere

QUIET = 1.0  # seconds before it is said that we wait
PATIENCE = 5.0  # seconds that a last look may take; longer, and the storage does not answer
SILENT = "something that does not answer: to look at it hangs, as on a mount whose server is gone"


def wait_for(path: str | os.PathLike[str], non_empty: bool = True, timeout: float = 300.0, poll: float = 0.5) -> Path:
    """Wait until ``path`` is there, and return it: a file with bytes in it, or a folder with something in it.

    A mount point that nothing is mounted on is an empty folder; with ``non_empty=False`` that will do, and so will an
    empty file. Looks at least once, and every ``poll`` seconds; the log of ``logging.getLogger("holdfast")`` says that
    it waits. After ``timeout`` seconds, `NotThere` says what was found instead.
    """
    path = Path(path)
    # In another process, as a look at a dead network mount never returns. A thread of ours that is stuck there would
    # keep this process from ending, too: some file systems let nobody kill who waits for them.
    looker = _start(path, non_empty, timeout, poll)
    try:
        found = _heard(looker, path, timeout)
    finally:
        _end(looker)
    if found:
        raise NotThere(str(path), timeout, found)
    return path


def _start(path: Path, non_empty: bool, timeout: float, poll: float) -> subprocess.Popen[str]:
    from_main = threading.current_thread() is threading.main_thread()
    errand = (str(path), non_empty, timeout, poll, os.getpid(), from_main)
    line = command(f"from holdfast.storage import _look_until; _look_until(*{errand!r})")
    with deaf_to_interrupts():
        return subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def _heard(looker: subprocess.Popen[str], path: Path, timeout: float) -> str:
    """What is there instead; empty when it is there."""
    deadline = time.monotonic() + timeout + PATIENCE
    try:
        said, _ = looker.communicate(timeout=min(QUIET, timeout + PATIENCE))
    except subprocess.TimeoutExpired:
        logging.getLogger("holdfast").info("waiting for %s, up to %.3g s", path, timeout)
        try:
            said, _ = looker.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return SILENT
    if looker.returncode:
        raise RuntimeError(f"the process that looked for {path} ended with status {looker.returncode}")
    return said.strip()


def _end(looker: subprocess.Popen[str]) -> None:
    looker.kill()
    assert looker.stdout is not None
    looker.stdout.close()
    try:
        looker.wait(timeout=QUIET)
    except subprocess.TimeoutExpired:
        looker.returncode = 0  # stuck beyond the reach of SIGKILL: it ends when the storage answers or goes


# In the process that looks


def _look_until(path: str, non_empty: bool, timeout: float, poll: float, parent: int, from_main: bool) -> None:
    child.settle()
    child.tie_to(parent, from_main)
    deadline = time.monotonic() + timeout
    while found := _missing(path, non_empty):
        left = deadline - time.monotonic()
        if left <= 0:
            break
        time.sleep(min(poll, left))
    print(found)


def _missing(path: str, non_empty: bool) -> str:
    """What is there instead; empty when it is there."""
    try:
        if not os.path.isdir(path):
            return "an empty file" if not os.stat(path).st_size and non_empty else ""
        with os.scandir(path) as entries:
            return "an empty folder" if non_empty and next(entries, None) is None else ""
    except FileNotFoundError:
        return "a link that leads nowhere" if os.path.islink(path) else "nothing"
    except OSError as error:
        return f"something that cannot be read ({error.strerror})"
