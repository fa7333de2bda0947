"""Workers that die, hang, or say what cannot be repeated."""

from __future__ import annotations

import signal
from typing import Any

from .base import HoldfastError, HoldfastWarning, place
from .verdict import Verdict


class WorkerDied(HoldfastError):
    """One sample ended the worker that loaded it, every time it was tried."""

    code = "HF201"
    facts = ("seat", "pid", "verdict", "batch", "sample", "indices", "attempts", "where")
    seat: int
    pid: int
    verdict: Verdict
    batch: int
    sample: Any
    indices: Any
    attempts: int
    where: str  # the sample's path, or what else describes it; empty when nothing is known

    def _what(self) -> str:
        where = f"batch {self.batch}" if self.sample is None else f"sample {self.sample} of batch {self.batch}"
        return f"worker {self.seat} (pid {self.pid}) {self.verdict} while it loaded {where}"

    def _lines(self) -> dict[str, str]:
        return {
            "where": place(self.where, self.sample, self.indices),
            "why": self.verdict.cause(),
            "did": self._done(),
            "try": self._advice(),
            "torch": self._as_torch_says(),
        }

    def _done(self) -> str:
        if self.attempts == 1:
            return "its batches were given to others; the run goes on"
        return f"tried {self.attempts} times, each in a new process; the other batches go on"

    def _advice(self) -> str:
        rest = 'load the rest without it: on_error="skip"'
        if self.sample is None:
            return rest
        return f"load that sample alone, in this process: dataset[{self.sample!r}]; or {rest}"

    def _as_torch_says(self) -> str:
        """The text by which programs and people know this failure from torch's loader."""
        status = self.verdict.status
        if status is not None and status < 0:
            return f"DataLoader worker (pid {self.pid}) is killed by signal: {signal.strsignal(-status)}."
        return f"DataLoader worker (pid(s) {self.pid}) exited unexpectedly"


class RestartsSpent(HoldfastError):
    """Workers died more often than ``max_restarts`` allows, or again and again without loading anything."""

    code = "HF202"
    facts = ("cause", "restarts", "seat", "pid", "verdict")
    cause: str
    restarts: int
    seat: int
    pid: int
    verdict: Verdict

    def _what(self) -> str:
        if self.cause == "crash loop":
            return f"{self.restarts} workers in a row died without loading a batch; the last one {self.verdict}"
        return f"workers died {self.restarts} times, more than max_restarts allows; the last one {self.verdict}"

    def _lines(self) -> dict[str, str]:
        return {
            "where": f"worker {self.seat} (pid {self.pid})",
            "why": self.verdict.cause(),
            "try": "run the same loop with num_workers=0: what kills a worker then happens under your eyes",
            "torch": f"DataLoader worker (pid(s) {self.pid}) exited unexpectedly",
        }


class LoaderTimeout(HoldfastError):
    """No batch arrived within ``timeout`` seconds."""

    code = "HF203"
    facts = ("seconds", "waiting_on", "report")
    seconds: float
    waiting_on: list[str]
    report: str  # what the worker that was silent the longest waits for

    def _what(self) -> str:
        return f"DataLoader timed out after {self.seconds} seconds"

    def _lines(self) -> dict[str, str]:
        return {
            "where": "waiting for " + "; ".join(self.waiting_on),
            "why": self.report,
            "try": "a larger timeout, or timeout=0 to wait",
        }


class WorkerStalled(HoldfastError):
    """A worker made no progress for ``stall_timeout`` seconds."""

    code = "HF205"
    facts = ("seat", "pid", "batch", "sample", "indices", "seconds", "doing", "why", "stack", "where")
    seat: int
    pid: int
    batch: int | None  # None: it never got as far as its first batch
    sample: Any
    indices: Any
    seconds: float
    doing: str  # "fetching sample 7 of batch 3", "running worker_init_fn"
    why: str  # what it waits for, as far as it can be seen
    stack: str  # Python stack, innermost call first, one line each; empty when it could not be had
    where: str

    def _what(self) -> str:
        return f"worker {self.seat} (pid {self.pid}) made no progress for {self.seconds:.3g} s while {self.doing}"

    def _lines(self) -> dict[str, str]:
        return {
            "where": place(self.where, self.sample, self.indices) if self.batch is not None else "",
            "why": self.why,
            "stack": "\n         ".join(self.stack.splitlines()),
            "try": self._advice(),
            "torch": f"DataLoader timed out after {self.seconds:.3g} seconds",
        }

    def _advice(self) -> str:
        if self.batch is None:
            return "make what it waits for there before the workers start; a larger stall_timeout, or 0, waits"
        return "on_error=Retry(1, on=WorkerStalled) | Skip() ends the worker and goes on; a larger stall_timeout waits"


class RemoteError(HoldfastError):
    """An exception of a worker that cannot be pickled, told by its type's name, text and attributes."""

    code = "HF204"
    facts = ("kind", "text", "attributes", "traceback")
    kind: str
    text: str
    attributes: dict[str, Any]
    traceback: str

    def _what(self) -> str:
        return f"{self.kind}: {self.text}"

    def _lines(self) -> dict[str, str]:
        return {"why": f"shown in place of {self.kind}, which cannot be passed between processes"}


class NoPrompt(HoldfastWarning):
    """A debugger was asked for where nobody can type."""

    code = "HF210"

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(f"{what}: there is no terminal for a prompt, and {instead}")
