"""The driver: seats for the contenders of a contest, and whose turn it is."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import compress
from pathlib import Path
from typing import IO, Any

from bench.contest import Contest, Outcome, Result

START_LIMIT = 180.0  # seconds; imports, files to write, a cluster to start
STARTS = 2  # contenders that get ready at a time, which nobody measures
GO_LIMIT = 120.0
OPENING = 2  # rounds for everybody
CLOSE_LIMIT = 60.0
LEAVE_LIMIT = 10.0
ROOT = Path(__file__).resolve().parents[1]


def environment() -> dict[str, str]:
    """What all processes that are measured are started with. Python keeps what it has compiled: of the others, pip has
    done that when it installed them. JPEGs are decoded without SIMD: libjpeg-turbo writes lines to memory that happens
    to be aligned to 32 bytes past the cache, which takes 1.6 times as long, and a process keeps its luck."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    fixed = {"OMP_NUM_THREADS": "1", "JSIMD_FORCENONE": "1", "PYTHONWARNINGS": "ignore"}
    return {**inherited, **fixed, "PYTHONPATH": path}


class Gone(Exception):
    """A seat that has ended, or did not answer in time."""


class Seat:
    """The process of one contender, started when it is first needed, and again when it was lost."""

    def __init__(self, contender: str, errors: IO[bytes]) -> None:
        self.contender = contender
        self._errors = errors
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, order: dict[str, Any], limit: float) -> dict[str, Any]:
        process = self._process or self._begin()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise Gone(self._lost()) from None
        line = _line(process, limit)
        if line is None:
            self.end()
            raise Gone(f"hangs: no answer within {limit:g} s")
        if not line:
            raise Gone(self._lost())
        return dict(json.loads(line))

    def leave(self) -> None:
        """It ends by itself, and takes away what has a name in shared memory; if it does not, it is ended."""
        if self._process is not None:
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(LEAVE_LIMIT)
        self.end()

    def end(self) -> None:
        """It and all that it has started, at once."""
        if self._process is not None:
            self._take_away()

    def _begin(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.seat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            cwd=ROOT, env=environment(), start_new_session=True,
        )  # fmt: skip
        return self._process

    def _take_away(self) -> int:
        """The exit status. Those that it leaves behind go too."""
        process, self._process = self._process, None
        assert process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        return status

    def _lost(self) -> str:
        assert self._process is not None
        self._process.wait()
        status = self._take_away()
        how = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"
        return f"the program ended: {how}"


def _line(process: subprocess.Popen[bytes], limit: float) -> bytes | None:
    """One line, b"" when the process has ended, None when time is up. Answers come one at a time: none is left over."""
    stream = process.stdout
    assert stream is not None
    until, got = time.monotonic() + limit, b""
    while not got.endswith(b"\n"):
        ended = process.poll() is not None  # its children may hold the pipe open: it has no end by itself
        left = 0.0 if ended else min(0.5, until - time.monotonic())
        if select.select([stream], [], [], max(0.0, left))[0]:
            part = os.read(stream.fileno(), 65536)
            if not part:
                return b""
            got += part
        elif ended:
            return b""
        elif time.monotonic() >= until and process.poll() is None:
            return None
    return got


class Seats:
    """All seats of a run. Each serves its contender in one contest after another."""

    def __init__(
        self, directory: Path, errors: IO[bytes], *, quick: bool, tell: Callable[[str], None] | None = None
    ) -> None:
        """`tell` is called with what happens next, for whoever watches."""
        self._seats: dict[str, Seat] = {}
        self._directory, self._errors, self._quick = directory, errors, quick
        self._tell = tell or (lambda what: None)

    def hold(self, contest: Contest, *, rounds: int | None = None, only: frozenset[str] | None = None) -> Outcome:
        """All contenders get ready; then they take turns, every other round in reverse, so that a disturbance of the
        machine meets all of them and none always runs after the same other. Who is far from us after two rounds has
        no more of them: the time is for those who are near."""
        outcome = Outcome(contest, [Result(name) for name in contest.contenders if only is None or name in only])
        if contest.fresh:
            self.end()
        with self._started(contest, outcome.results) as ready:
            rounds = rounds or contest.rounds
            for number in range(rounds):
                for result in reversed(ready) if number % 2 else ready:
                    decided = number >= OPENING and not outcome.is_open(result.contender)
                    if not (result.failed or result.cannot or decided):
                        self._tell(f"round {number + 1} of {rounds}: {result.contender}")
                        self._go(result)
        return outcome

    @contextlib.contextmanager
    def _started(self, contest: Contest, results: list[Result]) -> Iterator[list[Result]]:
        with ThreadPoolExecutor(STARTS) as both:
            ready = list(compress(results, both.map(lambda result: self._start(contest, result), results)))
        try:
            yield ready
        finally:
            for result in ready:
                if not result.failed:
                    self._close(result)

    def _start(self, contest: Contest, result: Result) -> bool:
        order = {
            "do": "start", "start": contest.start, "contender": result.contender, "settings": contest.settings,
            "quick": self._quick, "directory": str(self._directory),
        }  # fmt: skip
        self._tell(f"{result.contender} gets ready")
        return "ready" in self._ask(result, order, START_LIMIT)

    def _close(self, result: Result) -> None:
        """What has been measured stays, however it ends; the next contest gets a new process then."""
        seat = self._seats[result.contender]
        try:
            answer = seat.ask({"do": "close"}, CLOSE_LIMIT)
        except Gone as error:
            answer = {"failed": str(error)}
        if "closed" not in answer:
            seat.end()
            result.note = "; ".join(filter(None, [result.note, f"when closed: {answer.get('failed', answer)}"]))

    def _go(self, result: Result) -> None:
        answer = self._ask(result, {"do": "go"}, GO_LIMIT)
        if "figure" in answer:
            result.figures.append(answer["figure"])

    def _ask(self, result: Result, order: dict[str, Any], limit: float) -> dict[str, Any]:
        """The answer, with what it says of the contender noted in its result."""
        seat = self._seats.setdefault(result.contender, Seat(result.contender, self._errors))
        try:
            answer = seat.ask(order, limit)
        except Gone as error:
            answer = {"failed": str(error)}
        result.cannot = answer.get("cannot", "")
        result.failed = answer.get("failed", "")
        result.note = answer.get("note", result.note)
        if result.failed:
            result.figures.clear()
            seat.end()
        return answer

    def end(self) -> None:
        """All of them. Who is asked for again gets a new process."""
        for seat in self._seats.values():
            seat.leave()
