"""Everything holdfast raises, as a tree.

* HoldfastError (a RuntimeError, as torch's loader raises)
  - CannotShip          HF101  the data set or a function could not be handed to the workers
  - WorkerDied          HF201  a sample (or batch) ended its worker, each time it was tried
  - RestartsSpent       HF202  workers died more often than is allowed
  - LoaderTimeout       HF203  no batch within ``timeout``
  - RemoteError         HF204  an exception of a worker that cannot exist in the trainer
  - SharedMemoryFull    HF301  no room to pass a batch on
  - CannotSend          HF302  a batch that cannot be pickled

A raise site passes facts; the class writes the sentence. Facts are attributes, so a program can read them too.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, ClassVar

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


def _first(values: Any, shown: int = 4) -> str:
    try:
        values = list(values)
    except TypeError:
        return repr(values)
    return ", ".join(map(str, values[:shown])) + (", ..." if len(values) > shown else "")


class HoldfastError(RuntimeError):
    """Base of all errors that holdfast raises by itself; errors of your own code come through unchanged."""

    code = "HF000"
    facts: ClassVar[tuple[str, ...]] = ()
    """Names of the constructor's arguments, which are kept as attributes."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)  # they rebuild the error when it is pickled
        # One string instead of the facts is a text that was written before: so torch's ExceptionWrapper, and others,
        # carry an exception to another process.
        self._text = args[0] if len(args) == 1 and len(self.facts) != 1 and isinstance(args[0], str) else None
        values = args if self._text is None else (None,) * len(self.facts)
        for name, value in zip(self.facts, values, strict=True):
            setattr(self, name, value)

    def _what(self) -> str:
        return ""

    def _lines(self) -> dict[str, str]:
        """The labelled lines of the message: where, why, did, try."""
        return {}

    def __str__(self) -> str:
        if self._text is not None:
            return self._text
        lines = [f"{self._what()} [{self.code}]"]
        lines += [f"  {label:<6} {text}" for label, text in self._lines().items() if text]
        return "\n".join(lines)


class CannotShip(HoldfastError):
    """Something that the workers need cannot be pickled."""

    code = "HF101"
    facts = ("what", "path", "kind", "reason", "no_fork")
    what: str
    path: str
    kind: str
    reason: str
    no_fork: str  # why the workers were not forked instead; empty when that was not asked for

    def _what(self) -> str:
        return f"the {self.what} cannot be handed to the workers: {self.path} ({self.kind}) cannot be pickled"

    def _lines(self) -> dict[str, str]:
        return {
            "why": self.reason,
            "fork": self.no_fork,
            "try": f"make {self.path} in each worker, on first use or in worker_init_fn, instead of in the trainer; "
            'or start="fork" if no thread of the trainer holds a lock when the workers start',
        }


class WorkerDied(HoldfastError):
    """One sample ended the worker that loaded it, every time it was tried."""

    code = "HF201"
    facts = ("seat", "pid", "verdict", "batch", "sample", "indices", "attempts")
    seat: int
    pid: int
    verdict: Verdict
    batch: int
    sample: Any
    indices: Any
    attempts: int

    def _what(self) -> str:
        where = f"batch {self.batch}" if self.sample is None else f"sample {self.sample} of batch {self.batch}"
        return f"worker {self.seat} (pid {self.pid}) {self.verdict} while it loaded {where}"

    def _lines(self) -> dict[str, str]:
        at = f"dataset indices {_first(self.indices)}" if self.sample is None else f"dataset index {self.sample}"
        alone = f"load that sample alone, in this process: dataset[{self.sample!r}]"
        return {
            "where": at,
            "why": self.verdict.cause(),
            "did": f"tried {self.attempts} times, each in a new process; the other batches go on",
            "try": alone if self.sample is not None else "",
            "torch": self._as_torch_says(),
        }

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
    facts = ("seconds", "waiting_on")
    seconds: float
    waiting_on: list[str]

    def _what(self) -> str:
        return f"DataLoader timed out after {self.seconds} seconds"

    def _lines(self) -> dict[str, str]:
        return {"where": "waiting for " + "; ".join(self.waiting_on), "try": "a larger timeout, or timeout=0 to wait"}


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


class SharedMemoryFull(HoldfastError):
    """A batch does not fit into the shared memory that its worker may use."""

    code = "HF301"
    facts = ("wanted", "held", "limit", "reason")
    wanted: int
    held: int
    limit: int
    reason: str

    def _what(self) -> str:
        return f"no room for {_mib(self.wanted)} of shared memory"

    def _lines(self) -> dict[str, str]:
        if self.reason == "max_shared_memory":
            limit = f"max_shared_memory allows {_mib(self.limit)} for each worker"
        else:
            limit = f"the machine or container has {_mib(max(0, self.limit - self.held))} left"
        return {
            "why": f"{limit}; this worker's arena is {_mib(self.held)} already",
            "try": "smaller batches, a smaller prefetch_factor, fewer workers, or let go of batches sooner",
        }


class CannotSend(HoldfastError):
    """A batch that cannot be pickled, named down to the member in the way."""

    code = "HF302"
    facts = ("path", "kind", "reason")
    path: str
    kind: str
    reason: str

    def _what(self) -> str:
        return f"{self.path} ({self.kind}) cannot be sent to the trainer"

    def _lines(self) -> dict[str, str]:
        return {"why": self.reason, "try": "return tensors, arrays, numbers, strings, or objects that pickle"}


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 2**10:.1f} KiB"
