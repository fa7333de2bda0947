"""Tasks of a pool that did not come to their end, and pools that cannot work."""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool
from typing import Any

from .base import HoldfastError, indented
from .verdict import Verdict


class TaskDied(HoldfastError, BrokenProcessPool):
    """The worker died in this task. Others are not concerned: their tasks go on, and a new worker takes its place."""

    code = "HF901"
    facts = ("seat", "pid", "verdict", "task", "attempts")
    seat: int
    pid: int
    verdict: Verdict
    task: str  # as one would write it: "resize('a.jpg')"; empty when it was idle, or starting
    attempts: int

    def _what(self) -> str:
        return f"worker {self.seat} (pid {self.pid}) {self.verdict}" + (f" in {self.task}" if self.task else "")

    def _lines(self) -> dict[str, str]:
        tried = "" if self.attempts == 1 else f"tried {self.attempts} times, each in a new process; "
        return {
            "why": self.verdict.cause(),
            "did": f"{tried}this task failed, all others go on",
            "try": "retries=1, if it was killed from outside; or make the call in this process",
        }


class TaskTimeout(HoldfastError, TimeoutError):
    """A call took longer than ``task_timeout`` allows."""

    code = "HF902"
    facts = ("task", "seconds", "stack", "ended")
    task: str
    seconds: float
    stack: str  # where it was, innermost call first; empty when that could not be seen
    ended: bool  # the worker had to be killed

    def _what(self) -> str:
        return f"{self.task} took longer than its {self.seconds:.3g} s"

    def _lines(self) -> dict[str, str]:
        did = (
            "it did not stop when it was told to, so its worker was ended and replaced"
            if self.ended
            else "it was stopped"
        )
        return {
            "where": indented(self.stack),
            "did": did,
            "try": "a larger task_timeout, for the pool or for this call",
        }


class PoolBroken(HoldfastError, BrokenProcessPool):
    """No worker of this pool can be started, so no task of it can be done."""

    code = "HF903"
    facts = ("what", "why", "did", "advice")
    what: str
    why: str
    did: str
    advice: str

    def _what(self) -> str:
        return self.what

    def _lines(self) -> dict[str, str]:
        return {"why": self.why, "did": self.did, "try": self.advice}


class TaskExited(HoldfastError):
    """The function of a task called ``sys.exit``."""

    code = "HF904"
    facts = ("status",)
    status: Any

    def _what(self) -> str:
        return f"the task called sys.exit({'' if self.status is None else repr(self.status)})"

    def _lines(self) -> dict[str, str]:
        return {
            "did": "the task failed; its worker goes on",
            "try": "raise an exception to say what is wrong, or return to say that nothing is",
        }
