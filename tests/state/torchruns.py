"""Programs as processes of their own, alone or as the ranks of a torchrun."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil

LIMIT = 110.0  # seconds: what any program here may take before it counts as hung
PAGE = 4096


# What torchrun needs to start ranks again that find each other: pytorch#135712.
RESTARTS = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def ranks(world: int, *program: str | Path, restarts: int = 0) -> list[str | Path]:
    """The command that runs a program on so many ranks of this machine."""
    options = ["--standalone", f"--nproc-per-node={world}", f"--max-restarts={restarts}", "--monitor-interval=0.1"]
    return ["-m", "torch.distributed.run", *options, *program]


class Program:
    """A program that is running. What it prints waits in a pipe of one page: it cannot run far ahead of who reads."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self.process, self._errors = process, errors
        assert process.stdout is not None
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PAGE)

    def until(self, text: str) -> list[str]:
        """What it says, through the first line that has this in it."""
        assert self.process.stdout is not None
        said: list[str] = []
        for line in iter(self.process.stdout.readline, ""):
            said.append(line.rstrip("\n"))
            if text in line:
                return said
        raise AssertionError(f"it ended before it said {text!r}: {said[-3:]}\n{self.errors()}")

    def rest(self) -> list[str]:
        """What it still has to say, until it ends."""
        assert self.process.stdout is not None
        return self.process.stdout.read().splitlines()

    def finish(self) -> list[str]:
        """The same, and it ends well."""
        said = self.rest()
        status = self.process.wait(LIMIT)
        assert status == 0, f"status {status}: {said[-3:]}\n{self.errors()}"
        return said

    def kill(self) -> None:
        """This process and no other one, so that those it started have to notice by themselves."""
        self.process.kill()
        self.process.wait(LIMIT)

    def errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read()

    def rank(self, number: int) -> psutil.Process:
        """A rank's process, of a torchrun."""
        ours = psutil.Process(self.process.pid).children()
        return next(child for child in ours if child.environ().get("RANK") == str(number))


@contextmanager
def started(*command: str | Path, **env: str) -> Iterator[Program]:
    """Python with these arguments; at the end it is ended with all that it started."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **env},
        )
        try:
            yield Program(process, errors)
        finally:
            _end(process)


def run(*command: str | Path, **env: str) -> list[str]:
    """All that a program says, which ends well."""
    with started(*command, **env) as program:
        return program.finish()


def _end(process: subprocess.Popen[str]) -> None:
    """Ranks are in sessions of their own, so a signal to a group would not reach them."""
    assert process.stdout is not None
    if process.poll() is None:
        for child in [*psutil.Process(process.pid).children(recursive=True), process]:
            try:
                child.kill()
            except psutil.NoSuchProcess:
                pass
    process.stdout.close()
    process.wait(LIMIT)
