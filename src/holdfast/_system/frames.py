"""Where the threads of many processes are in their Python code, all within one limit in time.

py-spy comes first: it reads memory, so that a process does not notice, and it sees the few variables that say which
batch and which sample. Workers of holdfast can be asked as well; no other process is sent a signal.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from . import stacks
from .stacks import Unseen

_ASIDE = 0.05  # seconds of the limit that are kept for asking when py-spy has used up the rest
_AT_ONCE = 8  # processes that are read at the same time
_LINE = re.compile(r'File "(?P<path>.*)", line (?P<line>\d+) in (?P<function>.*)')


@dataclass(frozen=True, slots=True)
class Frame:
    """One call. ``variables``: those that were asked for and that it has, as text."""

    path: str
    line: int
    function: str
    variables: Mapping[str, str] = field(default_factory=dict)

    def is_in(self, path: str, *functions: str) -> bool:
        """Whether it is one of these functions, in the file whose path ends so."""
        return self.path.replace("\\", "/").endswith(path) and self.function in functions


Calls = tuple[Frame, ...]  # of one thread, innermost first


@dataclass(frozen=True, slots=True)
class Threads:
    """What was read of one process: its threads, the main one first; how; and why not, where it was not."""

    calls: tuple[Calls, ...] = ()
    seen_by: str = ""
    unseen: str = ""

    @property
    def main(self) -> Calls:
        return self.calls[0] if self.calls else ()


def read(pids: Iterable[int], askable: Collection[int], variables: Collection[str], limit: float) -> dict[int, Threads]:
    """``askable``: those that a signal reaches, if they expect one; ``variables``: the names of those to be read."""
    pids, deadline = list(pids), time.monotonic() + limit
    if not pids:
        return {}
    with ThreadPoolExecutor(_AT_ONCE) as readers:
        found = readers.map(lambda pid: _read(pid, pid in askable, variables, deadline), pids)
        return dict(zip(pids, found, strict=True))


def _read(pid: int, askable: bool, variables: Collection[str], deadline: float) -> Threads:
    left = deadline - time.monotonic() - _ASIDE
    try:
        if left <= 0:
            raise Unseen("there was no time left for it")
        threads = stacks.dump(pid, "--locals", limit=left)
        return Threads(tuple(_calls(thread, variables) for thread in threads), "py-spy")
    except Unseen as reason:
        return _asked(pid, str(reason)) if askable else Threads(unseen=str(reason))


def _asked(pid: int, unseen: str) -> Threads:
    try:
        told = stacks.ask(pid)
    except Unseen as reason:
        return Threads(unseen=f"{unseen}; by signal: {reason}")
    return Threads(tuple(_told(stack.lines) for stack in told), "signal")


def _calls(thread: dict[str, Any], variables: Collection[str]) -> Calls:
    return tuple(
        Frame(
            frame["filename"],
            frame["line"],
            frame["name"].rpartition(".")[2],
            {one["name"]: one["repr"] for one in frame["locals"] or () if one["name"] in variables and one["repr"]},
        )
        for frame in thread["frames"]
    )


def _told(lines: Iterable[str]) -> Calls:
    found = map(_LINE.match, lines)
    return tuple(Frame(match["path"], int(match["line"]), match["function"]) for match in found if match)
