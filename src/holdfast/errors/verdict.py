"""Why a worker ended."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from itertools import takewhile

_OURS = os.path.join("holdfast", "_worker", "")  # from here outwards a stack is ours and tells a user nothing
_SHOWN = 6  # innermost calls of a crash


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a worker ended: what the system told us, and the evidence found for a cause.

    ``status`` is as in subprocess: the exit code, or minus the signal; None when nobody could tell.
    """

    status: int | None
    stack: str = ""  # Python stack of a crash, innermost call first

    @property
    def signal(self) -> str | None:
        """The signal's name, if it was one."""
        if self.status is None or self.status >= 0:
            return None
        try:
            return signal.Signals(-self.status).name
        except ValueError:
            return f"signal {-self.status}"

    def __str__(self) -> str:
        if self.status is None:
            return "ended (its exit status is not known)"
        if self.status < 0:
            return f"was killed by {self.signal}"
        return f"exited with status {self.status}"

    def cause(self) -> str:
        """The evidence, in a line."""
        if self.stack:
            lines = [line.strip() for line in self.stack.splitlines()]
            frames = [line for line in lines if line.startswith("File ")]
            yours = list(takewhile(lambda line: _OURS not in line, frames))[:_SHOWN] or frames[:1]
            return "\n         ".join([lines[0], *yours])
        return "not known: it left no Python stack"
