"""States that cannot be saved, or not be gone on from."""

from __future__ import annotations

from typing import Any

from .base import HoldfastError


class UnsavableState(HoldfastError, TypeError):
    """A data set's ``state_dict()`` holds something that is not data."""

    code = "HF601"
    facts = ("path", "kind", "reason")
    path: str
    kind: str
    reason: str  # such as: "it contains itself"; empty when its kind is reason enough

    def _what(self) -> str:
        return f"{self.path} ({self.kind}) cannot be part of the loader's state"

    def _lines(self) -> dict[str, str]:
        return {
            "why": self.reason or "a state is data that JSON and torch.load(weights_only=True) take, not an object",
            "try": "numbers, strings, bytes, lists, tuples, dicts, sets, arrays and tensors can be; of an object, put "
            "what it is made from into state_dict(), and make it again in load_state_dict()",
        }


class StateMismatch(HoldfastError):
    """A state that this loader cannot go on from: it is of another run."""

    code = "HF602"
    facts = ("what", "saved", "here", "why")
    what: str  # such as: "a data set of length"
    saved: Any
    here: Any
    why: str

    def _what(self) -> str:
        return f"the state was saved with {self.what} {self.saved}, and this loader has {self.here}: {self.why}"

    def _lines(self) -> dict[str, str]:
        return {"try": "make the loader as it was when the state was saved, or begin anew, without load_state_dict()"}


class LoadedTooLate(HoldfastError):
    """``load_state_dict()`` was called when the iterator had been made already."""

    code = "HF603"

    def _what(self) -> str:
        return "load_state_dict() was called after this iterator was made: it would give batches from the wrong place"

    def _lines(self) -> dict[str, str]:
        return {
            "why": "a state takes effect with the next iter(loader)",
            "try": "loader.load_state_dict(state) first, and then for batch in loader (or iter(loader))",
        }


class StreamDiffers(HoldfastError):
    """An iterable data set that was read again to where it had been gave something else."""

    code = "HF604"
    facts = ("seat", "batches")
    seat: int | None
    batches: int  # that were to be passed over

    def _what(self) -> str:
        whose = "the dataset" if self.seat is None else f"the dataset of worker {self.seat}"
        return f"{whose} did not give the same again: its first {self.batches} batches are not those of the saved run"

    def _lines(self) -> dict[str, str]:
        return {
            "why": "a dataset without state_dict() is read again from its beginning, and it gave other items, or fewer",
            "try": "let __iter__ give the same items in the same order each time, or give the dataset state_dict() and "
            "load_state_dict()",
        }


class StateTooNew(HoldfastError):
    """A state that was saved by a later holdfast."""

    code = "HF605"
    facts = ("saved", "known")
    saved: int
    known: int

    def _what(self) -> str:
        return f"the state has format {self.saved}, and this version of holdfast reads up to {self.known}"

    def _lines(self) -> dict[str, str]:
        return {"why": "a later version saved it", "try": "pip install --upgrade holdfast"}
