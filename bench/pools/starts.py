"""From making a pool to its first result."""

from __future__ import annotations

import importlib
import time
from typing import Any

from bench.contest import Turn
from bench.pools import POOLS
from bench.pools.alone import alone
from bench.pools.contract import Wanted
from bench.pools.tasks import same

SECOND_POOL_BOUND = 50.0  # ms, of holdfast's pools
LIMIT = 60.0


class SecondPool:
    """One pool has been there before, as in a program that makes several: what is kept from it (a zygote, a cluster)
    is there. The pools of loky and joblib, which are kept by default, are ended in between."""

    def __init__(self, contender: str) -> None:
        self._ours, self._open = contender.startswith("holdfast"), POOLS[contender].open()
        self.note, self._least = "", float("inf")
        self.go()

    def go(self) -> float:
        """Milliseconds."""
        began = time.perf_counter()
        pool = self._open(Wanted())
        if pool.call(same, 1) != 1:
            raise AssertionError("wrong result")
        milliseconds = (time.perf_counter() - began) * 1000
        pool.close()
        self._least = min(self._least, milliseconds)
        if self._ours:
            self.note = f"bound of {SECOND_POOL_BOUND:g} ms {'held' if self._least <= SECOND_POOL_BOUND else 'missed'}"
        return milliseconds

    def close(self) -> None:
        pass


class FirstPool:
    """Each go is a new program, which imports nothing else. The import is not in the figure, and told beside it."""

    note = ""

    def __init__(self, contender: str) -> None:
        self._contender = contender
        self.go()

    def go(self) -> float:
        """Milliseconds."""
        answer = alone("bench.pools.starts:first", LIMIT, contender=self._contender)
        if answer.value is None:
            raise RuntimeError(answer.error or answer.ended or f"no result within {LIMIT:g} s")
        self.note = f"import {answer.value['import_ms']:.0f} ms before"
        return float(answer.value["start_ms"])

    def close(self) -> None:
        pass


def start_second(turn: Turn) -> SecondPool:
    return SecondPool(turn.contender)


def start_first(turn: Turn) -> FirstPool:
    return FirstPool(turn.contender)


def first(contender: str) -> dict[str, Any]:
    """In a program of its own."""
    peer, began = POOLS[contender], time.perf_counter()
    importlib.import_module(peer.library)
    open_ = peer.open()
    imported = time.perf_counter()
    pool = open_(Wanted())
    if pool.call(same, 1) != 1:
        raise AssertionError("wrong result")
    return {"start_ms": (time.perf_counter() - imported) * 1000, "import_ms": (imported - began) * 1000}
