"""The driver of one case: starts it, listens, and ends all that belongs to it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import IO

from bench.contest import FaultResult
from bench.faults.belongings import MARK, Belongings
from bench.faults.classify import Event, Finding, classify, is_final, leftovers
from bench.turns import ROOT, environment

WORKS = {"trainer killed": "orphans"}  # where it has another name than the fault
OPENING = 60.0  # seconds to the first batch: imports, files to write, a cluster to start
AFTER = 10.0
BATCHES = 20  # before the trainer is killed
MOUNT = "mount -t tmpfs -o size={size} tmpfs /dev/shm || exit 97; "
# The shell outlives the trainer: it says how that ended, and looks into its /dev/shm, which is gone with it.
SCRIPT = """"$@" </dev/null; echo '{"event": "exited", "status": '$?'}'; read go; ls -A /dev/shm; echo {}"""


def watched(contender: str, fault: str, limit: float) -> FaultResult:
    if fault == "shm" and namespace() is None:
        return FaultResult(contender, fault, "cannot", text="unshare -m is not allowed here")
    with (
        tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as directory,
        _Case(contender, fault, Path(directory), limit) as case,
    ):
        outcome, seconds, text = case.abandoned() if fault == "trainer killed" else case.met()
    return FaultResult(contender, fault, outcome, None if seconds is None else round(seconds, 3), text)


@cache
def namespace() -> tuple[str, ...] | None:
    """How a process may have a /dev/shm of its own here: as root, else as root of a user namespace."""
    for command in (("unshare", "-m"), ("unshare", "-rm")):
        probe = [*command, "sh", "-c", MOUNT.format(size="1m") + "true"]
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            if subprocess.run(probe, capture_output=True, timeout=10).returncode == 0:
                return command
    return None


class _Case:
    """A running case, with a /dev/shm of its own where that is allowed. It ends with the context."""

    def __init__(self, contender: str, fault: str, directory: Path, limit: float) -> None:
        mark, script = uuid.uuid4().hex, SCRIPT
        if namespace() is not None:
            script = MOUNT.format(size="1m" if fault == "shm" else "1g") + SCRIPT
        trainer = [sys.executable, "-m", "bench.faults.case", contender, WORKS.get(fault, fault), str(directory)]
        self._errors = (directory / "errors").open("wb")
        self._process = subprocess.Popen(
            [*(namespace() or ()), "sh", "-c", script, "sh", *trainer],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            cwd=ROOT, env={**environment(), MARK: mark}, start_new_session=True,
        )  # fmt: skip
        self._belongings = Belongings(self._process.pid, mark)
        assert self._process.stdout is not None
        self._lines = _Lines(self._process.stdout, self._belongings.look)
        self._directory, self._limit, self._strikes = directory, limit, fault not in ("shm", "trainer killed")

    def __enter__(self) -> _Case:
        return self

    def __exit__(self, *_: object) -> None:
        self._belongings.end()
        self._process.kill()
        self._process.wait()
        self._belongings.end()
        self._errors.close()

    def met(self) -> Finding:
        """What became of an epoch with the fault in it."""
        events: list[Event] = []
        for event in self._events():
            events.append(event)
            if is_final(event):
                break
        return classify(events, self._struck_at(), self._limit, strikes=self._strikes)

    def abandoned(self) -> Finding:
        """What is left of a trainer that is killed when it has had some batches."""
        events, trainer = [], None
        for event in self._events():
            events.append(event)
            trainer = event.get("pid", trainer)
            if is_final(event):
                return classify(events, None, self._limit, strikes=False)
            if len(events) > BATCHES and trainer is not None:
                break
        else:
            return classify(events, None, self._limit, strikes=False)
        self._belongings.alive()
        os.kill(trainer, signal.SIGKILL)
        began = time.monotonic()
        while (left := self._belongings.alive()) and time.monotonic() < began + AFTER:
            time.sleep(0.1)
        return leftovers([str(one.pid) for one in left], self._files(), time.monotonic() - began)

    def _struck_at(self) -> float | None:
        path = self._directory / "mines" / "struck"
        return float(path.read_text()) if path.exists() else None

    def _files(self) -> list[str] | None:
        """The files in its own /dev/shm."""
        if namespace() is None:
            return None
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")
        self._process.stdin.flush()
        files = []
        while (line := self._lines.next(self._limit)) not in (None, "{}"):
            files.append(line)
        return [file for file in files if not file.startswith("{")]  # no late event

    def _events(self) -> Iterator[Event]:
        """Until nothing more comes: before the first batch that takes longer."""
        patience = OPENING
        while (line := self._lines.next(patience)) is not None:
            event = json.loads(line)
            if event["event"] in ("batch", "there"):
                patience = self._limit
            yield {"at": time.monotonic(), **event}


class _Lines:
    """The lines of a stream, as they come; `meanwhile` is called now and then."""

    def __init__(self, stream: IO[bytes], meanwhile: Callable[[], None]) -> None:
        self._stream, self._meanwhile, self._rest = stream, meanwhile, b""

    def next(self, limit: float) -> str | None:
        """None at the end of the stream, and when time is up."""
        until = time.monotonic() + limit
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if left <= 0:
                return None
            if not select.select([self._stream], [], [], min(left, 0.5))[0]:
                self._meanwhile()
            elif part := os.read(self._stream.fileno(), 65536):
                self._rest += part
            else:
                return None
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()
