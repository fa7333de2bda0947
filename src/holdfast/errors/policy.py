"""Faults that no policy could help."""

from __future__ import annotations

from typing import Any

from .base import HoldfastError, first_of

_SHOWN = 20  # faults that a message lists


class TooManyFaults(HoldfastError):
    """More samples failed than ``Skip(limit=...)`` allows."""

    code = "HF206"
    facts = ("skipped", "seen", "limit", "faults")
    skipped: int
    seen: int
    limit: int | float
    faults: list[Any]  # of the ledger, those that were skipped and the one that was too many

    def _what(self) -> str:
        share = f"{self.limit} samples" if isinstance(self.limit, int) else f"{self.limit:.3g} of the samples"
        return f"{self.skipped} of {self.seen} samples failed, and only {share} may"

    def _lines(self) -> dict[str, str]:
        shown = [str(fault) for fault in self.faults[-_SHOWN:]]
        if len(self.faults) > _SHOWN:
            shown.insert(0, f"{len(self.faults) - _SHOWN} earlier ones, in loader.faults, then")
        return {
            "which": "\n         ".join(shown),
            "try": "look at the first of them: so many at once are seldom bad data; or a larger limit",
        }


class AllSamplesBad(HoldfastError):
    """A batch of which nothing is left."""

    code = "HF207"
    facts = ("batch", "indices", "reason", "faults")
    batch: int
    indices: Any
    reason: str  # why it could not be filled up
    faults: list[Any]

    def _what(self) -> str:
        return f"no sample of batch {self.batch} could be loaded, and {self.reason}"

    def _lines(self) -> dict[str, str]:
        return {
            "where": f"dataset indices {first_of(self.indices)}",
            "which": "\n         ".join(str(fault) for fault in self.faults[-_SHOWN:]),
            "try": "Skip(refill=True), the default, takes other samples; Replace(value) needs none",
        }


class StreamLost(HoldfastError):
    """An iterable data set that cannot be passed beyond a certain item."""

    code = "HF208"
    facts = ("seat", "item", "reason")
    seat: int | None
    item: int
    reason: str

    def _what(self) -> str:
        whose = "the dataset" if self.seat is None else f"the dataset of worker {self.seat}"
        return f"{whose} cannot go on after item {self.item}: {self.reason}"

    def _lines(self) -> dict[str, str]:
        return {
            "try": "catch the error inside __iter__ and go on there, or give the dataset an iterator object with "
            "__next__, which may raise for one item and go on with the next; a generator ends with its first exception"
        }


class Unaccounted(HoldfastError):
    """At the end of an epoch: samples that were neither delivered nor in the ledger. A bug of ours."""

    code = "HF209"
    facts = ("drawn", "delivered", "in_ledger")
    drawn: int
    delivered: int
    in_ledger: int

    def _what(self) -> str:
        return (
            f"the epoch does not add up: {self.drawn} samples were drawn, {self.delivered} delivered, "
            f"{self.in_ledger} are in the ledger"
        )

    def _lines(self) -> dict[str, str]:
        return {"why": "this is a bug in holdfast", "try": "report it, with the folder that HOLDFAST_BUNDLE names"}
