"""The Python stack of a process that runs, or hangs: from itself, when it answers, or as py-spy reads it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from types import FrameType
from typing import Any

from . import proc
from .posix_child import ASK_STACK, ASK_STACKS, STACK_PAGE

PATIENCE = 0.2  # seconds for the process to answer a signal: it takes a few ms, also in C code
PY_SPY = 2.0  # seconds for py-spy
_LONGEST = 1 << 20  # bytes of an answer that are read
_OURS = os.path.join("holdfast", "_worker", "")  # from here outwards a stack is ours and tells a user nothing


@dataclass(frozen=True, slots=True)
class Stack:
    """Where one thread is, innermost call first: lines like ``File "x.py", line 3 in f``."""

    thread: str
    lines: tuple[str, ...]


class Unseen(Exception):
    """There is no stack to be had this way; the text says why."""


def ask(pid: int, *, threads: bool = False) -> list[Stack]:
    """What a worker of holdfast answers, its main thread first; no other process is disturbed.

    A signal interrupts what it does, as any signal would; it does not wait for Python's turn, and it kills a process
    that does not expect it. So only one is asked that has said where its answer will be and has a handler.
    """
    number = ASK_STACKS if threads else ASK_STACK
    try:
        process = os.pidfd_open(pid)  # first: what is read below is of this process, or the signal reaches nobody
    except (AttributeError, OSError) as error:
        raise Unseen("it cannot be signalled") from error
    try:
        page = _open_page(pid)
        try:
            if not proc.catches(pid, number):
                raise Unseen("it does not answer to a signal")
            return _answer(pid, process, page, number)
        finally:
            os.close(page)
    finally:
        os.close(process)


def _open_page(pid: int) -> int:
    """Where its answers appear. A descriptor of ours, in which our place is our own."""
    folder = f"/proc/{pid}/fd"
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(FileNotFoundError):  # closed meanwhile
                if os.readlink(f"{folder}/{name}").startswith(f"/memfd:{STACK_PAGE}"):
                    return os.open(f"{folder}/{name}", os.O_RDWR)
    raise Unseen("it does not answer to a signal")


def _answer(pid: int, process: int, page: int, number: int) -> list[Stack]:
    os.ftruncate(page, 0)
    deadline = time.monotonic() + PATIENCE
    with suppress(OSError):  # it has ended
        signal.pidfd_send_signal(process, number)
    while time.monotonic() < deadline:
        time.sleep(0.001)
        if os.fstat(page).st_size and not proc.handles(pid, number):
            break
    stacks = parse(os.pread(page, _LONGEST, 0).decode("utf-8", "replace"))
    if not stacks:
        raise Unseen(f"it did not answer a signal within {PATIENCE} s")
    return stacks


def parse(text: str) -> list[Stack]:
    """The stacks in what ``faulthandler`` wrote, first that of the thread which the signal reached."""
    found: list[tuple[str, list[str]]] = []
    for line in map(str.strip, text.splitlines()):
        head, is_head, _ = line.partition(" (most recent call first)")
        if is_head:
            found.append((head, []))
        elif line.startswith("File ") and found:
            found[-1][1].append(line)
    found.sort(key=lambda stack: not stack[0].startswith(("Current thread", "Stack")))
    return [Stack(head, cut(lines)) for head, lines in found]


def cut(lines: Iterable[str]) -> tuple[str, ...]:
    """What is the user's of a stack, or the innermost line when nothing is."""
    lines = list(lines)
    return tuple(takewhile(lambda line: _OURS not in line, lines)) or tuple(lines[:1])


def of_frame(frame: FrameType | None) -> tuple[str, ...]:
    """The stack of a thread of this process."""
    lines = []
    while frame is not None:
        lines.append(_line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return cut(lines)


def _line(path: str, number: int, function: str) -> str:
    return f'File "{path}", line {number} in {function}'


def py_spy(pid: int) -> list[Stack]:
    """What py-spy reads, main thread first, without stopping the process: also of one that is stopped or stuck."""
    threads = dump(pid, limit=PY_SPY)
    return [Stack(thread["thread_name"] or "", cut(map(_frame, thread["frames"]))) for thread in threads]


def dump(pid: int, *options: str, limit: float) -> list[dict[str, Any]]:
    """What py-spy says, as it says it, main thread first; ``options`` are more of its own."""
    program = find_py_spy()
    if program is None:
        raise Unseen("py-spy is not installed")
    told, complaint = _run([program, "dump", "--nonblocking", "--json", *options, "--pid", str(pid)], limit)
    try:
        threads: list[dict[str, Any]] = json.loads(told)
    except ValueError:
        raise Unseen(f"py-spy: {complaint}") from None
    # In a container it has other numbers there than here, and only the name tells.
    threads.sort(key=lambda thread: (thread["os_thread_id"] != pid, thread["thread_name"] != "MainThread"))
    return threads


def _frame(frame: dict[str, Any]) -> str:
    return _line(frame["filename"], frame["line"], frame["name"].rpartition(".")[2])


def find_py_spy() -> str | None:
    beside = os.path.dirname(sys.executable)  # of an environment that was not activated
    return shutil.which("py-spy") or shutil.which("py-spy", path=beside)


def _run(command: list[str], limit: float) -> tuple[str, str]:
    """What it says, and what it complains of, within a limit that holds even when it cannot be killed at once."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    except OSError as error:
        return "", f"{error.strerror}"
    try:
        told, complaint = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        _end(process)
        return "", f"no answer within {limit:.1f} s"
    return told, (complaint.splitlines() or [""])[0].removeprefix("Error: ")


def _end(process: subprocess.Popen[str]) -> None:
    """Kill it, and wait no longer than that takes as a rule: a thread takes note of an end that comes later."""
    process.kill()
    try:
        process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        threading.Thread(target=process.wait, name="holdfast-py-spy-end", daemon=True).start()
