"""Random generator objects in a data set: each worker has a copy, all in the same state.

Whether one hurts cannot be seen from the object: one that shuffled a list in ``__init__`` never moves again, and one
that is seeded for every item may be anywhere. So a worker watches: what it has drawn from in its first batch, and
began in the state that the trainer shipped, goes through the same numbers in every worker and in every epoch.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from .anatomy import anatomy
from .finding import Finding, Severity
from .graph import walk

_WORDS = 624  # of the state of the Mersenne Twister: so many numbers are drawn from it before it is stirred
_STIRS = 1600  # that are looked at in one go: 8 MB of numbers
_GOES = 20  # 20 million numbers: more than one batch draws

_FIXES = {
    "random": "rng = random.Random(torch.initial_seed())",
    "numpy": "rng = numpy.random.default_rng(torch.initial_seed())",
    "torch": "rng = torch.Generator().manual_seed(torch.initial_seed())",
}
_KINDS = {
    ("random", "Random"),
    ("numpy", "Generator"),
    ("numpy", "RandomState"),
    ("numpy", "BitGenerator"),
    ("torch", "Generator"),
}
_STATELESS = ("random", "SystemRandom")


@dataclass(frozen=True)
class Drawn:
    """A generator that a worker has drawn from, and the fingerprint of the state in which it came to that worker."""

    path: str
    kind: str
    start: int


def random_objects(root: object, name: str = "dataset") -> list[tuple[str, Any]]:
    """(path, generator) of each that belongs to ``root``, without the global ones, which are seeded for every batch."""
    return _random_among(walk(root, name))


def _random_among(walked: Iterable[tuple[str, object]]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    shared = {id(generator) for generator in _global_generators()}
    for path, value in walked:
        if _package(value) is None or id(value) in shared:
            continue
        if not path.startswith(tuple(f"{owner}." for owner, _ in found)):
            found.append((path, value))
    return found


def fingerprints(root: object, name: str = "dataset") -> dict[str, int]:
    """The state of each generator by its path, as a number that is the same in any process."""
    return {path: _fingerprint(_state(value)) for path, value in random_objects(root, name)}


class Watch:
    """Sees which generators of a data set are drawn from, in the worker that it is made in."""

    def __init__(self, root: object, name: str = "dataset") -> None:
        self._objects = [(path, value, _state(value)) for path, value in random_objects(root, name)]

    def excuse_seeded(self) -> None:
        """To be called after ``worker_init_fn``: what it changed was seeded for this worker, as it should be."""
        self._objects = [(path, value, state) for path, value, state in self._objects if _state(value) == state]

    def drawn(self) -> list[Drawn]:
        """Those that have given numbers since; one that was only seeded anew, or replaced, is not among them."""
        return [
            Drawn(path, _kind(value), _fingerprint(state))
            for path, value, state in self._objects
            if _was_drawn_from(state, _state(value))
        ]


def repeated(drawn: Sequence[Drawn], shipped: Mapping[str, int], *, persistent: bool = False) -> list[Finding]:
    """Those that began in the state which was shipped, and so begin in it in every worker; and in every epoch, unless
    workers are ``persistent``."""
    why = "every worker draws the same numbers from its own copy of it"
    if not persistent:
        why += ", again in every epoch"
    return [
        Finding(one.path, one.kind, why, _fix(one.kind), Severity.ERROR)
        for one in drawn
        if shipped.get(one.path) == one.start
    ]


def suspects(root: object, name: str = "dataset") -> list[Finding]:
    """All generators of a data set that has not been run: what would be wrong if they are drawn from at use."""
    return suspects_among(walk(root, name))


def suspects_among(walked: Iterable[tuple[str, object]]) -> list[Finding]:
    """The same, for who walks once and looks for several things."""
    why = "if it is drawn from in workers, each has its own copy of it and draws the same numbers, again in every epoch"
    return [
        Finding(path, _kind(value), why, _fix(_kind(value)), Severity.WARNING)
        for path, value in _random_among(walked)
    ]


def _global_generators() -> list[object]:
    mtrand: Any = numpy.random.mtrand
    return [random.random.__self__, mtrand._rand, mtrand._rand._bit_generator, torch.default_generator]  # type: ignore[attr-defined]


def _package(value: object) -> str | None:
    names = anatomy(value).bases.keys()
    return None if _STATELESS in names else next((package for package, _ in names & _KINDS), None)


def _kind(value: object) -> str:
    return f"{_package(value)}.{anatomy(value).kind.__name__}"


def _fix(kind: str) -> str:
    return (
        f"{_FIXES[kind.partition('.')[0]]}  # where numbers are drawn; or the global functions, seeded for every batch"
    )


# States are tuples that can be compared and printed: ("MT19937", key, position), or whatever the generator has.


def _state(value: Any) -> tuple[Any, ...]:
    try:
        return _state_of(_package(value), value)
    except Exception:  # a generator of the user's own making: without a state, nothing is said of it
        return ()


def _state_of(package: str | None, value: Any) -> tuple[Any, ...]:
    if package == "torch":
        return "torch", torch.Generator.initial_seed(value), torch.Generator.get_state(value).numpy().tobytes()
    if package == "random":
        *key, position = random.Random.__base__.getstate(value)  # type: ignore[union-attr]
        return "MT19937", tuple(key), position
    state = _bits(value).state
    if state["bit_generator"] == "MT19937":
        return "MT19937", tuple(state["state"]["key"].tolist()), state["state"]["pos"]
    return tuple(_flat(state))


def _bits(value: Any) -> Any:
    bases = anatomy(value).bases
    for name, attribute in (("Generator", "bit_generator"), ("RandomState", "_bit_generator")):
        if ("numpy", name) in bases:
            return bases["numpy", name].__dict__[attribute].__get__(value)
    return value


def _flat(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((key, _flat(member)) for key, member in value.items())
    return value.tobytes() if isinstance(value, numpy.ndarray) else value


def _fingerprint(state: tuple[Any, ...]) -> int:
    return int.from_bytes(hashlib.blake2b(repr(state).encode(), digest_size=8).digest(), "little")


def _was_drawn_from(before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    if before == after or not before or not after:
        return False
    if before[0] == after[0] == "torch":
        return bool(before[1] == after[1])  # the seed, which drawing leaves as it is
    if before[0] == after[0] == "MT19937":
        return _leads_to(before[1], after[1])
    return True  # of numpy's newer ones, which have no method to be seeded anew


def _leads_to(key: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a Mersenne Twister comes from one key to the other by drawing numbers: seeding puts it elsewhere."""
    sought = _twister(other).random_raw(_WORDS)
    ahead = _twister(key)
    for _ in range(_GOES):
        words = ahead.random_raw(_WORDS * _STIRS).reshape(_STIRS, _WORDS)
        if any(numpy.array_equal(words[i], sought) for i in numpy.flatnonzero(words[:, 0] == sought[0])):
            return True
    return False


def _twister(key: tuple[int, ...]) -> Any:
    bits = numpy.random.MT19937(0)
    bits.state = {"bit_generator": "MT19937", "state": {"key": numpy.array(key, numpy.uint64), "pos": 0}}
    return bits
