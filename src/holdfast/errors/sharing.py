"""Memory that cannot be shared, found or changed."""

from __future__ import annotations

import os
import re

from .base import HoldfastError


class SharedGone(HoldfastError):
    """A shared thing arrived, but its memory is not to be had: whoever sent it has let go of it, or is gone."""

    code = "HF701"
    facts = ("address", "reason")
    address: str
    reason: str  # the system's

    def _what(self) -> str:
        return "the memory of a shared object is not there any more"

    def _lines(self) -> dict[str, str]:
        return {
            "where": self.address,
            "why": f"{self._holder()} ({self.reason})" if self.reason else self._holder(),
            "try": "keep the shared object in the process that hands it on until it has arrived; to keep it in a file, "
            "save a copy: numpy.array(x), x.clone(), list(x)",
        }

    def _holder(self) -> str:
        found = re.match(r"/proc/(\d+)/", self.address)
        if found is None:
            return "the last process that held it has let go of it"
        there = os.path.isdir(f"/proc/{found[1]}")
        return f"process {found[1]}, which sent it, " + (
            "does not hold it, or does not show it" if there else "has ended"
        )


class CannotShare(HoldfastError, TypeError):
    """Something whose bytes cannot be put into shared memory."""

    code = "HF702"
    facts = ("path", "kind", "reason")
    path: str
    kind: str
    reason: str

    def _what(self) -> str:
        return f"{self.path} ({self.kind}) cannot be shared"

    def _lines(self) -> dict[str, str]:
        return {
            "why": self.reason,
            "try": "arrays, tensors, modules, and long lists, dicts and strings of plain data can be; for a number "
            "that all processes change there is holdfast.Counter, for an object that each makes itself per_worker",
        }


class ReadOnlyShared(HoldfastError):
    """An attempt to write to a tensor that was shared with ``readonly=True``."""

    code = "HF703"
    facts = ("operation",)
    operation: str

    def _what(self) -> str:
        return f"{self.operation} would write to a tensor that was shared for reading only"

    def _lines(self) -> dict[str, str]:
        return {"try": "x.clone() for a copy to change, or share(x) without readonly=True"}
