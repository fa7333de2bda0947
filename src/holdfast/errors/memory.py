"""Batches that cannot travel."""

from __future__ import annotations

from pickle import PicklingError

from .base import HoldfastError, size


class SharedMemoryFull(HoldfastError):
    """A batch does not fit into the shared memory that its worker may use."""

    code = "HF301"
    facts = ("wanted", "held", "limit", "reason")
    wanted: int
    held: int
    limit: int
    reason: str

    def _what(self) -> str:
        return f"no room for {size(self.wanted)} of shared memory"

    def _lines(self) -> dict[str, str]:
        if self.reason == "max_shared_memory":
            limit = f"max_shared_memory allows {size(self.limit)} for each worker"
        else:
            limit = f"the machine or container has {size(max(0, self.limit - self.held))} left"
        return {
            "why": f"{limit}; this worker's arena is {size(self.held)} already",
            "try": "smaller batches, a smaller prefetch_factor, fewer workers, or let go of batches sooner",
        }


class CannotSend(HoldfastError, PicklingError):
    """A batch or a result that cannot be pickled, named down to the member in the way."""

    code = "HF302"
    facts = ("path", "kind", "reason")
    path: str
    kind: str
    reason: str

    def _what(self) -> str:
        return f"{self.path} ({self.kind}) cannot be sent out of its worker"

    def _lines(self) -> dict[str, str]:
        return {"why": self.reason, "try": "return tensors, arrays, numbers, strings, or objects that pickle"}
