"""Runs a program in a process, session, folder and room of its own, and leaves nothing of it behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from multiprocessing.connection import wait
from pathlib import Path

import psutil

from . import room
from .ran import Ran
from .row import Row, Side

LIMIT = 60.0  # seconds that any program has
GRACE = 1.0  # seconds in which what a program started must be gone after its end
_MARK = "HOLDFAST_GAUNTLET"  # in the environment of a program, so in that of everything it starts, wherever it went
_running: set[Program] = set()


def run(row: Row, side: Side) -> Ran:
    with tempfile.TemporaryDirectory(prefix="gauntlet-", ignore_cleanup_errors=True) as folder:
        for name, text in {**row.files, "program.py": row.source(side)}.items():
            Path(folder, name).write_text(text)
        patience = row.patience if side is Side.TORCH else LIMIT
        return Program(row, Path(folder)).watched(patience)


def why_not(row: Row) -> str:
    """What is missing on this machine to make the room of this row; empty when nothing is."""
    if not hasattr(os, "pidfd_open"):
        return "Linux"
    made = subprocess.Popen(_in(row.room, "/bin/true"), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    _, said = made.communicate()
    row.room.clear_away(made.pid)
    return said.strip() if made.returncode else ""


def end_all() -> None:
    """All programs that run now; whoever watches them sees them end."""
    for program in list(_running):
        program.end()


class Program:
    """A program that runs. Owns its process, everything that this one starts, and the pipes to it."""

    def __init__(self, row: Row, folder: Path) -> None:
        self._mark = f"{os.getpid()}-{os.urandom(8).hex()}"
        self._began, self._room = time.monotonic(), row.room
        program = ("-c", (folder / "program.py").read_text()) if row.without_file else ("program.py",)
        self._process = subprocess.Popen(
            _in(row.room, sys.executable, *program),
            cwd=folder,
            env={**_environment(), "PYTHONUNBUFFERED": "1", _MARK: self._mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        _running.add(self)

    def watched(self, patience: float) -> Ran:
        """Until it ends, or its time is over: ``LIMIT``, and ``patience`` seconds after its first line of output."""
        try:
            out, err, ended = self._heard(patience)
            seconds = time.monotonic() - self._began
            outlived = _outlived(self._mark) if ended else []
        finally:
            self.end()
            self._close()
        return Ran(self._process.returncode if ended else None, out, err, seconds, outlived)

    def _heard(self, patience: float) -> tuple[str, str, bool]:
        assert self._process.stdout
        assert self._process.stderr
        out, err = _Pipe(self._process.stdout.fileno()), _Pipe(self._process.stderr.fileno())
        sentinel, deadline, ended = os.pidfd_open(self._process.pid), self._began + LIMIT, False
        try:
            while not ended and time.monotonic() < deadline:
                awaited = [sentinel, *(pipe.fd for pipe in (out, err) if pipe.open)]
                ready = wait(awaited, max(0.0, deadline - time.monotonic()))
                silent = not out.text
                out.read()
                err.read()
                if silent and out.text:
                    deadline = min(deadline, time.monotonic() + patience)
                ended = sentinel in ready
        finally:
            os.close(sentinel)
        out.read()
        err.read()
        return out.text.decode(errors="replace"), err.text.decode(errors="replace"), ended

    def end(self) -> None:
        """It and all that it started, by their pids. Again is harmless."""
        self._process.kill()  # does nothing to one that was waited for
        self._process.wait()
        while left := family(self._mark):  # again, for what they were starting meanwhile
            for pid in left:
                _kill(pid)
            _wait_for(left[0], GRACE)

    def _close(self) -> None:
        _running.discard(self)
        self._room.clear_away(self._process.pid)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()


class _Pipe:
    """What has come out of a pipe so far; never waits, as a process that lives on may hold the other end."""

    def __init__(self, fd: int) -> None:
        self.fd, self.text, self.open = fd, b"", True
        os.set_blocking(fd, False)

    def read(self) -> None:
        while self.open:
            try:
                more = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return
            self.text += more
            self.open = bool(more)


def _environment() -> dict[str, str]:
    """Ours, without what would make holdfast behave in another way than by itself."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}


def _in(place: room.Room, *command: str) -> list[str]:
    return [sys.executable, "-I", "-S", room.__file__, json.dumps(asdict(place)), *command]


def family(mark: str) -> list[int]:
    """Processes whose mark begins so; it begins with the pid of whoever runs them."""
    found, sign = [], f"{_MARK}={mark}".encode()
    for pid in psutil.pids():
        try:
            if sign in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
        except OSError:
            pass  # ended meanwhile, or somebody else's
    return found


def _outlived(mark: str) -> list[str]:
    """Those who are still there when ``GRACE`` is over."""
    deadline = time.monotonic() + GRACE
    while left := family(mark):
        if time.monotonic() > deadline:
            return [f"pid {pid}" for pid in left]
        _wait_for(left[0], deadline - time.monotonic())
    return []


def _wait_for(pid: int, limit: float) -> None:
    try:
        sentinel = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        wait([sentinel], max(0.0, limit))
    finally:
        os.close(sentinel)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
