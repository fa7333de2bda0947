"""A fork of this process that tries something out with the user's objects, so that here they stay as they are.

It reports plain values while it works, has a limit in time, and is ended with all that it started. What it does to
files that are open here is undone. That it hangs, or dies, is an answer, too.

The fork uses one thread for computing, as workers do: the threads of OpenMP do not come along, and to wait for them
would be to wait for ever.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import signal
import struct
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from holdfast.errors.verdict import Verdict

if TYPE_CHECKING:
    from holdfast._engine.stalls import Stall
    from holdfast._system.process import ChildProcess

_LENGTH = struct.Struct("=Q")
_NOTE = struct.Struct("=dI")
_LONGEST = 400  # bytes of an index, as it is noted
_LOOKS = 0.25  # seconds between two looks at the note of a probe that says nothing
_KEPT = 4000  # characters of what it said last, and of the stack of its crash, which begins with what matters
Report = Callable[[Any], None]


class Note:
    """Which sample a probe is on, in memory that can be read when it says nothing any more. The probe writes."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)

    def on(self, index: object) -> None:
        text = repr(index).encode()[:_LONGEST]
        _NOTE.pack_into(self._memory, 0, time.monotonic(), len(text))
        self._memory[_NOTE.size : _NOTE.size + len(text)] = text

    def off(self) -> None:
        _NOTE.pack_into(self._memory, 0, 0.0, 0)

    def read(self) -> tuple[str, float]:
        """The index as Python writes it, and since when; empty and 0 when it is on none."""
        since, length = _NOTE.unpack_from(self._memory)
        return self._memory[_NOTE.size : _NOTE.size + length].decode("utf-8", "replace"), since


@dataclass(frozen=True)
class Outcome:
    """What became of a probe: ``told`` is all that it reported.

    At most one of the others is there: it died, it was silent on one sample for too long, or raised what it did not
    expect. Without any of them it came to its end, or was cut off at its limit.
    """

    told: tuple[Any, ...]
    finished: bool
    verdict: Verdict | None = None
    stall: Stall | None = None
    raised: str = ""
    sample: str = ""  # that it was on when it died, or stalled


def run(work: Callable[[Report, Note], None], limit: float, patience: float) -> Outcome:
    """``limit``: seconds in all; ``patience``: seconds for one sample that ``work`` has noted."""
    from holdfast._system import positions

    note = Note()
    with positions.kept(), tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as crash:
        reader, writer = os.pipe()
        with open(reader, "rb", buffering=0) as pipe:
            process = _fork(work, note, writer, said, crash)
            os.close(writer)
            try:
                return _heard(process, _Ear(pipe), note, time.monotonic() + limit, patience, said, crash)
            finally:
                _end(process)


def _heard(
    process: ChildProcess, ear: _Ear, note: Note, until: float, patience: float, said: IO[bytes], crash: IO[bytes]
) -> Outcome:
    from holdfast._engine.stalls import examine

    while not ear.over:
        sample, since = note.read()
        due = min(until, since + patience) if since else until
        ear.listen(min(due - time.monotonic(), _LOOKS))
        if time.monotonic() < due:
            continue
        if time.monotonic() >= until:
            return Outcome(tuple(ear.told), finished=False)
        if note.read() == (sample, since):
            return Outcome(tuple(ear.told), finished=False, stall=examine(process.pid), sample=sample)
    process.join(max(0.0, until - time.monotonic()))
    status = process.exitcode
    told, sample = tuple(ear.told), note.read()[0]
    if status == 0:
        raised = ear.told.pop() if ear.told and isinstance(ear.told[-1], _Raised) else None
        return Outcome(tuple(ear.told), finished=raised is None, raised=raised.text if raised else "")
    verdict = Verdict(status, _text(crash)[:_KEPT], stderr=_text(said)[-_KEPT:])
    return Outcome(told, finished=False, verdict=verdict, sample=sample)


@dataclass(frozen=True)
class _Raised:
    text: str


class _Ear:
    """Our end of the pipe; whole messages only."""

    def __init__(self, pipe: IO[bytes]) -> None:
        from holdfast._system.waiting import Waiter

        self._fd, self._waiter, self._come = pipe.fileno(), Waiter(), b""
        self._waiter.watch(self._fd)
        self.told: list[Any] = []
        self.over = False

    def listen(self, seconds: float) -> bool:
        """Wait for something to be said, no longer than this; False when nothing was."""
        if not self._waiter.wait(max(0.0, seconds)):
            return False
        data = os.read(self._fd, 1 << 16)
        self.over = not data
        self._come += data
        while len(self._come) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._come)[0]
            if len(self._come) < end:
                break
            self.told.append(pickle.loads(self._come[_LENGTH.size : end]))
            self._come = self._come[end:]
        return True


def _end(process: ChildProcess) -> None:
    """With all that it started: they are of its group, and a group keeps its number until its first is reaped."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()
    process.close()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace").strip()


# -- in the fork -------------------------------------------------------------------------------


def _fork(
    work: Callable[[Report, Note], None], note: Note, writer: int, said: IO[bytes], crash: IO[bytes]
) -> ChildProcess:
    from holdfast._system.fork import forked_child

    stderr = os.dup(said.fileno())
    try:
        process = forked_child(lambda: _work(work, note, writer, crash), stderr)
    finally:
        os.close(stderr)
    with contextlib.suppress(OSError):  # it may have done so, or ended
        os.setpgid(process.pid, process.pid)
    return process


def _work(work: Callable[[Report, Note], None], note: Note, writer: int, crash: IO[bytes]) -> None:
    import torch

    from holdfast._system import posix_child

    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    posix_child.lead("stdout", os.dup(2))
    posix_child.write_crashes_to(crash.fileno(), 0)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # where they are errors, one of ours would end a step: what they say is found out

    def report(value: Any) -> None:
        packed = pickle.dumps(value)
        left = memoryview(_LENGTH.pack(len(packed)) + packed)
        while left:
            left = left[os.write(writer, left) :]

    try:
        work(report, note)
    except Exception:
        report(_Raised(traceback.format_exc()))
    note.off()
    os._exit(0)
