"""Data that is not there, or not what it seems."""

from __future__ import annotations

from .base import HoldfastError, HoldfastWarning


class EmptyDataset(HoldfastError, ValueError):
    """A data set without samples: an epoch of no batches, which looks like success."""

    code = "HF401"
    facts = ("kind", "hint")
    kind: str
    hint: str  # such as: "its folder /data/train is empty"

    def _what(self) -> str:
        return f"the data set ({self.kind}) is empty"

    def _lines(self) -> dict[str, str]:
        return {
            "why": self.hint,
            "try": "holdfast.wait_for(path, non_empty=True) before the data set is made, when storage may be mounted "
            "late; allow_empty=True if this is meant",
        }


class NotThere(HoldfastError, FileNotFoundError):
    """``wait_for`` waited, and it did not come."""

    code = "HF402"
    facts = ("path", "seconds", "found")
    path: str
    seconds: float
    found: str  # what is there instead: "nothing", "an empty folder", "a mount point without a mount"

    def _what(self) -> str:
        return f"{self.path} did not come within {self.seconds:.3g} s; there is {self.found}"


class UnshardedStream(HoldfastWarning):
    """Every worker yields the same items: each of them reaches the trainer once per worker."""

    code = "HF403"


class RepeatedRandom(HoldfastWarning):
    """A random generator object in the data set: a copy in each worker, all in the same state."""

    code = "HF404"


class SharedHandle(HoldfastWarning):
    """An open file, socket or database in the data set, that several workers would share."""

    code = "HF405"


class IteratorPerStep(HoldfastWarning):
    """``next(iter(loader))`` in a loop: a new epoch for every step."""

    code = "HF406"
