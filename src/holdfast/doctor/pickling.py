"""What pickling a data set costs, and what of it cannot be pickled.

To pickle is to run code of the user's (``__reduce__``, ``__getstate__``), so all of it happens in a fork, which ends
with everything that code has changed, and is killed when it does not end. A large data set is pickled for a moment
only, and estimated from that.
"""

from __future__ import annotations

import pickle
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from multiprocessing.reduction import ForkingPickler
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from holdfast._system.trial import Tell, tried
from holdfast._transport import culprit
from holdfast._transport.shipment import as_if_spawning, try_to_ship
from holdfast.audit.anatomy import anatomy

_LIMIT = 2.0  # seconds until the fork is killed
_WHOLE = 0.015  # seconds for the data set as a whole, and ...
_PART = 0.005  # ... for each of its members, when that was not enough
_ALL = 0.03  # for everything
_SEARCH = 0.5  # for what cannot be pickled, once it is known that there is something
_SAMPLED = 512
_FEW = 64  # parts that are looked at one by one
_DEEPEST = 3
_VARIABLE = re.compile(r" \(its variable (\w+)\)")
_BULKY = 1 << 20  # bytes, from which it is worth knowing what they are


class Weight(NamedTuple):
    """Bytes of a pickle, and the seconds it takes to make it. ``exact``: measured to the end, not estimated."""

    size: int
    seconds: float
    exact: bool = True


class Refusal(NamedTuple):
    """A member that plain pickle does not take. ``ships``: ours does."""

    path: str
    kind: str
    reason: str
    ships: bool


class Pickled(NamedTuple):
    """``weight`` is None when it cannot be pickled; ``bulk`` is the heaviest member, with its share of the bytes."""

    weight: Weight | None = None
    bulk: tuple[str, int] | None = None
    refusals: tuple[Refusal, ...] = ()
    ended: bool = True


def pickled(roots: Mapping[str, object]) -> Pickled:
    """All roots together; plain pickle, as ``spawn`` and ``forkserver`` of multiprocessing use it."""
    told, ended = tried(lambda tell: _try(roots, tell), _LIMIT)
    weights = [fact for fact in told if isinstance(fact, Weight)]
    bulks = [fact for fact in told if type(fact) is tuple]
    refusals = tuple(fact for fact in told if isinstance(fact, Refusal))
    if refusals or not weights:
        return Pickled(None, None, refusals, ended)
    return Pickled(_sum(weights), max(bulks, key=lambda bulk: bulk[1], default=None), (), ended)


def _try(roots: Mapping[str, object], tell: Tell) -> None:
    until = time.perf_counter() + _ALL
    for name, root in roots.items():
        try:
            weight = _weigh(root, _WHOLE)
        except Exception as error:
            for refusal in _refusals(root, name, error):
                tell(refusal)
            continue
        if weight.exact and weight.size < _BULKY:
            tell(weight)
            continue
        found = list(_weigh_parts(root, name, until, tell))
        if found:
            path, heaviest = max(found, key=lambda one: one[1].size)
            tell((path, heaviest.size))
        tell(weight if weight.exact else _sum([one for _, one in found]))


def _weigh_parts(root: object, name: str, until: float, tell: Tell) -> Iterator[tuple[str, Weight]]:
    for label, part in _parts(root):
        try:
            yield name + label, _estimate(part, until, _DEEPEST)
        except Exception as error:  # which the whole had not come to
            for refusal in _refusals(part, name + label, error):
                tell(refusal)


# -- how much ----------------------------------------------------------------------------------


class _Enough(Exception):
    pass


class _Scales:
    """A file that only counts, and stops whoever writes when time is up."""

    def __init__(self, seconds: float) -> None:
        self._until = time.perf_counter() + seconds
        self.size = 0

    def write(self, data: Any) -> int:
        size = len(data)
        self.size += size
        if time.perf_counter() > self._until:
            raise _Enough
        return size

    def add(self, buffer: pickle.PickleBuffer) -> None:
        self.size += buffer.raw().nbytes


class _Plain(pickle.Pickler):
    """As multiprocessing pickles for a child, but without moving a tensor: torch's own way puts them into shared
    memory, for good, and a pickle has only the name of it."""

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        reducer = ForkingPickler._extra_reducers.get(kind)  # type: ignore[attr-defined]
        if reducer is None:
            return NotImplemented
        return (int, ()) if kind.__module__.startswith("torch") else reducer(obj)


def _weigh(value: object, seconds: float) -> Weight:
    """Raises what pickling raises. Seconds of CPU: how busy the machine is now does not matter then."""
    scales, began = _Scales(seconds), time.process_time()
    exact = True
    try:
        with as_if_spawning():
            _Plain(scales, 5, buffer_callback=scales.add).dump(value)
    except _Enough:
        exact = False
    return Weight(scales.size, time.process_time() - began, exact)


def _estimate(value: Any, until: float, depth: int) -> Weight:
    """Exact where that is quick, else from some of its parts."""
    weight = _weigh(value, min(_PART, max(0.0, until - time.perf_counter())))
    if weight.exact or not depth:
        return weight
    count, sampled = _sample(value)
    if count <= _FEW:
        parts = [_estimate(part, until, depth - 1) for _, part in _parts(value)]
        return max(_sum(parts), weight, key=lambda one: one.size)  # an array has no parts, and has been weighed
    while len(sampled) > 1 and not _weigh(sampled, _PART).exact:
        sampled = sampled[::8]
    some = _weigh(sampled, _PART)  # again: the first look copies the pages they are on, as this is a fork
    return Weight(some.size * count // len(sampled), some.seconds * count / len(sampled), False)


def _sum(weights: Sequence[Weight]) -> Weight:
    size, seconds = sum(weight.size for weight in weights), sum(weight.seconds for weight in weights)
    return Weight(size, seconds, all(weight.exact for weight in weights))


def _sample(value: Any) -> tuple[int, Sequence[Any]]:
    if type(value) is dict:
        return len(value), list(islice(value.items(), _SAMPLED))
    if type(value) in (list, tuple):
        return len(value), value[:: max(1, len(value) // _SAMPLED)]
    return 0, []


# -- what not ----------------------------------------------------------------------------------


def _refusals(value: object, name: str, error: Exception) -> list[Refusal]:
    """Of each member by itself: who mends one should not have to come back for the next."""
    until = time.perf_counter() + _SEARCH
    found = [one for label, part in _parts(value) if (one := _refusal(part, name + label, until)) is not None]
    whole = None if found else _refusal(value, name, until)
    if whole is None and not found:  # too large to be searched in time
        whole = Refusal(name, anatomy(value).name, f"{type(error).__name__}: {error}", ships=False)
    return [whole] if whole else found


def _refusal(value: object, name: str, until: float) -> Refusal | None:
    plain = culprit.find_culprit(value, name, _bounded(lambda it: _weigh(it, _PART), until), _parts)
    if plain is None:
        return None
    ours = culprit.find_culprit(value, name, _bounded(try_to_ship, time.perf_counter() + _SEARCH), _inner_parts)
    return Refusal(*(ours or plain), ships=ours is None)


def _bounded(attempt: Callable[[object], object], until: float) -> Callable[[object], object]:
    """Nothing fails when time is up: what has been found by then is what is told."""
    return lambda value: attempt(value) if time.perf_counter() < until else None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What pickle takes of an object: not what its ``__getstate__`` leaves out, and nothing of a function."""
    if isinstance(value, Mapping | list | tuple | set):
        yield from culprit.members(value)
    elif isinstance(value, partial):
        yield from ((f".{name}", getattr(value, name)) for name in ("func", "args", "keywords"))
    elif isinstance(value, MethodType):
        yield ".__self__", value.__self__
    elif not isinstance(value, FunctionType | type):
        state = _state(value)
        if isinstance(state, dict):
            yield from ((f".{key}", member) for key, member in state.items())


def _inner_parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What holdfast sends of it: of a function also what is inside. Named as the rest of the audit names it."""
    if isinstance(value, FunctionType):
        yield from ((_VARIABLE.sub(r".<closure>.\1", label), part) for label, part in culprit.members(value))
    else:
        yield from _parts(value)


def _state(value: Any) -> Any:
    try:
        _, _, state, *_ = value.__reduce_ex__(5)
    except Exception:  # it refuses by itself, or has no state
        return None
    if type(state) is tuple and len(state) == 2:  # with slots
        return {**(state[0] or {}), **(state[1] or {})}
    return state
