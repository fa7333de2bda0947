"""How long a loader takes to go on where another one stopped, at 90 % of an epoch.

The state is taken once, after as many batches, outside of the time. Each go makes a new loader, gives it the state and
takes one batch, which has to be the very next one of the interrupted epoch.
"""

from __future__ import annotations

import itertools
import pickle
import time
from collections.abc import Iterator
from typing import Any, Protocol

from bench.contest import Cannot, Turn
from bench.measures.opening import opening
from bench.works.work import Loader, Open, Work

PART = 0.9


class Resumptions:
    note = ""

    def __init__(self, open_: Open, work: Work) -> None:
        self._open, self._work = open_, work
        self._state, self._next = self._interrupted()

    def _interrupted(self) -> tuple[bytes, list[int]]:
        """The state, as a checkpoint would have it, and the samples of the batch that comes next."""
        loader = self._open(self._work)
        try:
            bookmark = bookmark_of(loader)
            iterator = bookmark.begin(None)
            for _ in itertools.islice(iterator, int(PART * self._work.batches)):
                pass
            state = pickle.dumps(bookmark.state())
            numbers = self._work.numbers(next(iterator))
            del iterator, bookmark
        finally:
            loader.close()
        return state, numbers

    def go(self) -> float:
        began = time.perf_counter()
        loader = self._open(self._work)
        try:
            iterator = bookmark_of(loader).begin(pickle.loads(self._state))
            batch = next(iterator)
            seconds = time.perf_counter() - began
            numbers = self._work.numbers(batch)
            del iterator, batch
        finally:
            loader.close()
        if numbers != self._next:
            raise AssertionError(f"went on with the samples {numbers[:3]} …, not with {self._next[:3]} …")
        return seconds

    def close(self) -> None:
        pass


class Bookmark(Protocol):
    """How a loader is told where to begin, and asked where it is."""

    def begin(self, state: Any) -> Iterator[Any]:
        """An epoch from that state on; with None, from its start."""

    def state(self) -> Any:
        """Where the epoch is, after the last batch that was taken."""


class OfLoader:
    """As in torch's ecosystem: the loader has `state_dict` and, to be called before it begins, `load_state_dict`."""

    def __init__(self, loader: Loader, stateful: Any) -> None:
        self._loader, self._stateful = loader, stateful

    def begin(self, state: Any) -> Iterator[Any]:
        if state is not None:
            self._stateful.load_state_dict(state)
        return iter(self._loader)

    def state(self) -> Any:
        return self._stateful.state_dict()


class OfIterator:
    """As in Grain: the iterator has `get_state` and `set_state`."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def begin(self, state: Any) -> Iterator[Any]:
        if state is not None:
            self._iterator.set_state(state)
        found: Iterator[Any] = self._iterator
        return found

    def state(self) -> Any:
        return self._iterator.get_state()


def bookmark_of(loader: Any) -> Bookmark:
    """The loader itself may have the methods, or what it wraps as `loader`, or its iterator."""
    for stateful in (loader, getattr(loader, "loader", None)):
        if hasattr(stateful, "load_state_dict"):
            return OfLoader(loader, stateful)
    if hasattr(type(iterator := iter(loader)), "get_state"):
        return OfIterator(iterator)
    raise Cannot("has no state")


def start(turn: Turn) -> Resumptions:
    return Resumptions(*opening(turn))
