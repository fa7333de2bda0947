"""Samples that no batch can be made of."""

from __future__ import annotations

from typing import Any

from .base import HoldfastError, place


class NoneSample(HoldfastError, TypeError):
    """``dataset[index]`` gave None, or a sample with None in it, which default_collate cannot stack."""

    code = "HF303"
    facts = ("index", "member", "where")
    index: Any
    member: str  # "sample", "sample[0]", "sample['image']"
    where: str

    def _what(self) -> str:
        return f"dataset[{self.index!r}] gave None" + (f" as {self.member}" if self.member != "sample" else "")

    def _lines(self) -> dict[str, str]:
        return {
            "where": place(self.where, self.index, None),
            "why": "a batch cannot be made of None (torch: default_collate: batch must contain tensors, numpy arrays, "
            "numbers, dicts or lists; found <class 'NoneType'>)",
            "try": 'let __getitem__ raise instead of returning None, and give the loader on_error="skip": the batch is '
            "filled up with another sample and the ledger says what failed",
        }


class UnequalSamples(HoldfastError):
    """Two samples of a batch that cannot be stacked: their shapes, or their structure, differ."""

    code = "HF304"
    facts = ("member", "first", "second", "reason")
    member: str  # "sample", "sample[0]", "sample['image']"
    first: tuple[Any, str, str]  # index, shape (or what else differs), path
    second: tuple[Any, str, str]
    reason: str  # in torch's words

    def _what(self) -> str:
        (index, shape, _), (other, different, _) = self.first, self.second
        what = "" if self.member == "sample" else f" ({self.member})"
        return f"samples {index!r} and {other!r} cannot be one batch{what}: {shape} and {different}"

    def _lines(self) -> dict[str, str]:
        places = [place(path, index, None) for index, _, path in (self.first, self.second)]
        return {
            "where": "\n         ".join(places),
            "why": self.reason,
            "try": "make them equal in the dataset (resize, crop, pad), or pass a collate_fn that pads; "
            'on_error="skip" leaves the odd ones out',
        }


class StopInItem(HoldfastError):
    """``StopIteration`` out of ``dataset[index]``: it would end the epoch early, and silently."""

    code = "HF305"
    facts = ("index", "where")
    index: Any
    where: str

    def _what(self) -> str:
        return f"dataset[{self.index!r}] raised StopIteration; only an iterable dataset ends that way"

    def _lines(self) -> dict[str, str]:
        return {
            "where": place(self.where, self.index, None),
            "why": "next() was called on an iterator that had no more; torch takes that for the end of the epoch",
            "try": "next(iterator, default), or raise IndexError or ValueError yourself",
        }
