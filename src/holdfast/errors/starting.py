"""Before the first batch."""

from __future__ import annotations

from pickle import PicklingError

from .base import HoldfastError


class CannotShip(HoldfastError, PicklingError):
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
            "try": self._advice(),
        }

    def _advice(self) -> str:
        if self.what.startswith(("function", "arguments")):  # of a task
            return f"leave {self.path} out, or make it in the worker: resource=, or holdfast.per_worker"
        return (
            f"make {self.path} in each worker, on first use or in worker_init_fn, instead of in the trainer; "
            'or start="fork" if no thread of the trainer holds a lock when the workers start'
        )
