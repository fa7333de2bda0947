"""The field guide: every failure by its number, and which of them a message is about."""

from __future__ import annotations

import re

from .failure import Failure
from .failures_beyond import BEYOND
from .failures_data import DATA
from .failures_loading import LOADING
from .failures_starting import STARTING

__all__ = ["FAILURES", "Failure", "matching", "near"]

FAILURES = {failure.id: failure for failure in (*STARTING, *LOADING, *DATA, *BEYOND)}
_READ = 100_000  # characters from the end of a text: an exception stands last
_ORDINARY = 4  # letters: shorter words say nothing


def matching(text: str) -> list[Failure]:
    """The failures whose message or symptom is in the text, best first: the longest part of it that was recognised."""
    text = text[-_READ:]
    lengths = {failure.id: _recognised(failure, text) for failure in FAILURES.values()}
    found = [number for number, length in lengths.items() if length]
    return [FAILURES[number] for number in sorted(found, key=lambda number: -lengths[number])]


def near(text: str, shown: int = 5) -> list[Failure]:
    """Failures that have words with the text in common, when no pattern fits."""
    words = _words(text[-_READ:])
    shared = {number: len(words & _words(f"{one.title} {one.today}")) for number, one in FAILURES.items()}
    best = sorted((number for number, count in shared.items() if count), key=lambda number: -shared[number])
    return [FAILURES[number] for number in best[:shown]]


def _recognised(failure: Failure, text: str) -> int:
    found = (match for pattern in failure.patterns for match in re.finditer(pattern, text, re.IGNORECASE))
    return max((len(match[0]) for match in found), default=0)


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z_]+", text.lower()) if len(word) >= _ORDINARY}
