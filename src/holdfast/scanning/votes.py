"""What most samples look like, and who does not: a vote about every part of a sample.

Memory does not grow with the number of samples. Positions are kept of what may still turn out to be rare, and let go
once it is not: when more than the allowed share of a vote is not for the usual, it is no exception but variety, as of
images of any size.
"""

from __future__ import annotations

import base64
import zlib
from array import array
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .look import CONSTANT, EMPTY, INF, NAN, Look

KIND, SHAPE = "kind", "shape"
SHARES = {KIND: 0.1, SHAPE: 0.01, EMPTY: 0.01, CONSTANT: 0.01, NAN: 0.5, INF: 0.5}  # up to which it is odd
NUMBERS = (NAN, INF)  # however few samples there are to compare with
FEWEST = 3  # samples, of which one can be the odd one
MANY = 256  # different answers, with which a vote is no vote
KEPT, MOST = 1000, 100_000  # positions of one answer that are kept: at least, and at most
PATHS = 512  # parts of a sample
EXPANDED = 10_000  # looks whose parts are remembered


@dataclass(slots=True)
class Heard:
    """One answer. ``positions``: of those who gave it; None: too many."""

    count: int = 0
    positions: array[int] | None = field(default_factory=lambda: array("q"))
    first: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Vote:
    answers: dict[Hashable, Heard] = field(default_factory=dict)
    varies: bool = False

    def usual(self) -> Hashable:
        return max(self.answers, key=lambda answer: self.answers[answer].count)

    def hear(self, answer: Hashable, positions: Sequence[int], keep: int) -> None:
        heard = self.answers.get(answer)
        if heard is None:
            if self.varies:
                return
            if len(self.answers) == MANY:
                self._let_go()
                return
            heard = self.answers[answer] = Heard()
        heard.count += len(positions)
        if len(heard.first) < 5:
            heard.first += positions[: 5 - len(heard.first)]
        if heard.positions is not None:
            heard.positions.extend(positions)
            if len(heard.positions) > keep:
                heard.positions = None
        if len(self.answers) > 1 and not self.varies and self._others() > keep:
            self._let_go()

    def _others(self) -> int:
        counts = [heard.count for heard in self.answers.values()]
        return sum(counts) - max(counts)

    def _let_go(self) -> None:
        self.varies = True
        for heard in self.answers.values():
            heard.positions = None


@dataclass(frozen=True, slots=True)
class Odd:
    """Samples that differ from the rest in one way. ``positions``: all of them; None: too many to be listed."""

    path: str
    aspect: str
    found: str
    usual: str
    count: int
    of: int
    first: list[int]
    positions: array[int] | None


class Votes:
    """``total``: samples that are to be read; None: not known."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._votes: dict[tuple[str, str], Vote] = {}
        self._expanded: dict[Look, list[tuple[tuple[str, str], Hashable]]] = {}

    def hear(self, look: Look, positions: Sequence[int]) -> None:
        """So look the samples in these positions."""
        said = self._expanded.get(look)
        if said is None:
            if len(self._expanded) == EXPANDED:
                self._expanded.clear()
            said = self._expanded[look] = list(dict.fromkeys(_said(look)))
        for about, answer in said:
            vote = self._votes.get(about)
            if vote is None:
                if len(self._votes) == PATHS:
                    continue
                vote = self._votes[about] = Vote()
            vote.hear(answer, positions, self._keep(about[1]))

    def _keep(self, aspect: str) -> int:
        share = SHARES[aspect.partition(" ")[0]]
        return min(MOST, max(KEPT, int((self._total or 0) * share)))

    # -- the count -----------------------------------------------------------------------------

    def odd(self) -> Iterator[Odd]:
        """The most harmful first: other kinds, bad numbers, other shapes."""
        kinds = [(path, vote) for (path, aspect), vote in self._votes.items() if aspect == KIND and not vote.varies]
        for path, vote in kinds:
            yield from self._in(path, KIND, vote, of=sum(heard.count for heard in vote.answers.values()))
        for path, vote in kinds:
            of = sum(heard.count for heard in vote.answers.values())
            for mark in (NAN, INF, EMPTY, CONSTANT):
                if marked := self._votes.get((path, mark)):
                    yield from _marked(path, mark, marked.answers[True], of)
        for path, vote in kinds:
            kind = vote.usual()
            if shapes := self._votes.get((path, f"{SHAPE} {kind}")):
                yield from self._in(path, SHAPE, shapes, of=vote.answers[kind].count)

    def _in(self, path: str, aspect: str, vote: Vote, of: int) -> Iterator[Odd]:
        usual = vote.usual()
        most = vote.answers[usual].count
        others = {answer: heard for answer, heard in vote.answers.items() if answer != usual}
        if vote.varies or not others or of < FEWEST or most * 2 <= of:
            return
        if aspect == SHAPE and of - most > max(1, SHARES[SHAPE] * of):
            return
        for answer, heard in sorted(others.items(), key=lambda item: -item[1].count):
            is_told = aspect == SHAPE and 0 in answer and (path, EMPTY) in self._votes  # type: ignore[operator]
            if heard.count <= max(1, SHARES[aspect] * of) and not is_told:
                yield Odd(path, aspect, _words(answer), _words(usual), heard.count, of, heard.first, heard.positions)

    def usual(self) -> dict[str, str]:
        """Of every part what most samples have; shapes where they are nearly all the same."""
        found = {}
        for (path, aspect), vote in self._votes.items():
            if aspect == KIND:
                kind = vote.usual()
                shapes = self._votes.get((path, f"{SHAPE} {kind}"))
                found[path] = f"{kind}{_shape_in_words(shapes)}"
        return found

    # -- from one run to the next --------------------------------------------------------------

    def saved(self) -> list[Any]:
        return [
            [path, aspect, vote.varies, [[answer, _packed(heard)] for answer, heard in vote.answers.items()]]
            for (path, aspect), vote in self._votes.items()
        ]

    @classmethod
    def restored(cls, saved: list[Any], total: int | None) -> Votes:
        made = cls(total)
        for path, aspect, varies, answers in saved:
            heard = {tuple(key) if isinstance(key, list) else key: _unpacked(packed) for key, packed in answers}
            made._votes[path, aspect] = Vote(heard, varies)
        return made


def _said(look: Look) -> Iterator[tuple[tuple[str, str], Hashable]]:
    for path, node in look.nodes():
        yield (path, KIND), node.kind
        if node.shape is not None:
            yield (path, f"{SHAPE} {node.kind}"), node.shape
        for mark in node.marks:
            yield (path, mark), True


def _marked(path: str, mark: str, heard: Heard, of: int) -> Iterator[Odd]:
    least = 1 if mark in NUMBERS else FEWEST
    if of >= least and (heard.count <= SHARES[mark] * of or heard.count == 1):
        yield Odd(path, mark, mark, f"not {mark}", heard.count, of, heard.first, heard.positions)


def _words(answer: Any) -> str:
    return "×".join(map(str, answer)) if isinstance(answer, tuple) else str(answer)


def _shape_in_words(vote: Vote | None) -> str:
    if vote is None:
        return ""
    usual = vote.usual()
    count = sum(heard.count for heard in vote.answers.values())
    if vote.varies or vote.answers[usual].count < 0.9 * count:
        return ", of any shape"
    return f" {_words(usual)}"


def _packed(heard: Heard) -> Mapping[str, Any]:
    positions = heard.positions
    packed = None if positions is None else base64.b64encode(zlib.compress(positions.tobytes(), 1)).decode()
    return {"count": heard.count, "first": heard.first, "positions": packed}


def _unpacked(packed: Mapping[str, Any]) -> Heard:
    positions = None
    if packed["positions"] is not None:
        positions = array("q")
        positions.frombytes(zlib.decompress(base64.b64decode(packed["positions"])))
    return Heard(packed["count"], positions, packed["first"])
