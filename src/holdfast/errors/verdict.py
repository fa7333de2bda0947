"""Why a worker ended."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from itertools import takewhile

_OURS = os.path.join("holdfast", "_worker", "")  # from here outwards a stack is ours and tells a user nothing
_SHOWN = 6  # innermost calls of a crash
_SENT = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM")  # by somebody's decision


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a worker ended: what the system told us, and the evidence found for a cause.

    ``status`` is as in subprocess: the exit code, or minus the signal; None when nobody could tell.
    """

    status: int | None
    stack: str = ""  # Python stack of a crash, innermost call first; or why there never was a process
    oom: str = ""  # what the kernel's OOM killer did, with its counter and the limit
    not_oom: str = ""  # how we know that it was not the kernel's OOM killer
    limits: str = ""  # the limit that was reached, with its value
    ended_by_us: bool = False  # the signal came from this process
    stderr: str = ""  # the last lines of it
    doing: str = ""  # "fetching sample 7 of batch 3 for 0.2 s"

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
        """The cause, and the evidence for it; or that it is not known, and what it was not."""
        doing = [f"it was {self.doing}"] if self.doing else []
        stderr = ["stderr:", *(f"  {line}" for line in self.stderr.splitlines())] if self.stderr else []
        return "\n         ".join([*self._reason(), *self._calls(), *doing, *stderr])

    def _reason(self) -> list[str]:
        if self.oom or self.limits:
            return [self.oom or self.limits]
        if self.stack:
            return []  # its first line says it
        if self.status is None:
            return ["not known: nobody was there to be told its exit status"]
        if self.status >= 0:
            return ["it ended by itself, without an exception: os._exit or C code called exit"]
        if self.ended_by_us:
            return [f"{self.signal} was sent by this process"]
        if self.signal == "SIGKILL" and not self.not_oom:
            return ["not known: the counter of the kernel's OOM killer (oom_kill) cannot be read here"]
        if self.signal in _SENT:
            sent = f"{self.signal} was sent by a program, another one or itself"
            return [f"{sent}; {self.not_oom}" if self.not_oom else sent]
        return ["not known: it left no Python stack, and no limit was reached that we know of"]

    def _calls(self) -> list[str]:
        lines = [line.strip() for line in self.stack.splitlines()]
        frames = [line for line in lines if line.startswith("File ")]
        yours = list(takewhile(lambda line: _OURS not in line, frames))[:_SHOWN] or frames[:1]
        return [*lines[:1], *yours]
