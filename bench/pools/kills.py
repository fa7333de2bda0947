"""Workers that are killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from bench.contest import Cannot, Turn
from bench.pools import POOLS
from bench.pools.alone import Answer, alone
from bench.pools.contract import OpenPool, Wanted
from bench.pools.tasks import own_pid, short

AFTER_KILL_BOUND = 50.0  # ms, of holdfast's pools
RETRIES = 20
START = 60.0  # seconds that a pool may take to start


class AfterKill:
    """The only worker of a pool is killed while it waits for work. Each go is a program of its own, with some kills."""

    def __init__(self, turn: Turn) -> None:
        self._turn, self.note, self._least = turn, "", float("inf")
        self.go()

    def go(self) -> float:
        """Milliseconds, the least of some."""
        arguments = {"contender": self._turn.contender, "patience": self._turn.scaled(15, 6)}
        answer = alone("bench.pools.kills:after_kill", START, **arguments)
        if answer.value is None:
            raise Cannot(_reason(answer, "hangs: it does not start"))
        if answer.value == "hangs":
            raise Cannot("hangs: the next task never returns")
        self._least = min(self._least, answer.value)
        if self._turn.contender.startswith("holdfast"):
            self.note = f"bound of {AFTER_KILL_BOUND:g} ms {'held' if self._least <= AFTER_KILL_BOUND else 'missed'}"
        return float(answer.value)

    def close(self) -> None:
        pass


class Storm:
    """Tasks of 3 ms, while a worker is killed every 20 to 50 ms. Each go is a program of its own. As a pool may be
    lucky, the note tells of its worst go."""

    def __init__(self, turn: Turn) -> None:
        self._contender, self.note, self._least = turn.contender, "", float("inf")
        self._count, self._seconds, self._patience = (400, 1.0, 8.0) if turn.quick else (1500, 3.0, 20.0)

    def go(self) -> float:
        """How many results are right."""
        arguments = {"count": self._count, "seconds": self._seconds, "patience": self._patience}
        answer = alone("bench.pools.kills:storm", self._patience + START, contender=self._contender, **arguments)
        if answer.value is None:
            raise Cannot(_reason(answer, "hangs: no task returns"))
        right = float(answer.value["right"])
        if right < self._least:
            self._least = right
            self.note = f"of {self._count}; at worst {right:.0f}, kills: {answer.value['kills']}{answer.value['rest']}"
        return right

    def close(self) -> None:
        pass


def start_after_kill(turn: Turn) -> AfterKill:
    return AfterKill(turn)


def start_storm(turn: Turn) -> Storm:
    return Storm(turn)


def after_kill(contender: str, patience: float) -> float | str:
    """In a program of its own."""
    pool = POOLS[contender].open()(Wanted(workers=1))
    waiter, least = ThreadPoolExecutor(1), float("inf")  # it waits, so that there is a limit for all pools
    for _ in range(3):
        os.kill(waiter.submit(pool.call, own_pid).result(), signal.SIGKILL)
        began = time.perf_counter()
        next_one = waiter.submit(pool.call, own_pid)
        if not wait([next_one], patience).done:
            return "hangs"
        next_one.result()
        least = min(least, time.perf_counter() - began)
    return least * 1000


def storm(contender: str, count: int, seconds: float, patience: float) -> dict[str, Any]:
    """In a program of its own."""
    pool = POOLS[contender].open()(Wanted(retries=RETRIES))
    pool.map(short, range(10), chunks=False)
    until = time.monotonic() + patience
    with _Killer(pool, seconds) as killer:
        try:
            came = _each(pool, count, until, f"no result within {patience:g} s")
        except Cannot:
            came = _all_at_once(pool, count)
    right = sum(value == 2 * number for number, value in enumerate(came))
    failed = Counter(value for value in came if isinstance(value, str))
    rest = "".join(f", {number} × {name}" for name, number in failed.most_common(2))
    return {"right": right, "kills": killer.kills, "rest": rest}


def _each(pool: OpenPool, count: int, until: float, late: str) -> list[Any]:
    """The result of each task, or what is said of its failure; `late` of those that have not come until then."""
    came: list[Any] = []
    try:
        handles = pool.submit(short, range(count))
    except Cannot:
        raise
    except Exception as error:  # broken while they are submitted
        return [_name(error)] * count
    for handle in handles:
        left = until - time.monotonic()
        try:
            came.append(pool.result(handle, max(0.01, left)))
        except Exception as error:
            came.append(late if time.monotonic() > until else _name(error))
    return came


def _all_at_once(pool: OpenPool, count: int) -> list[Any]:
    try:
        return pool.map(short, range(count))
    except Exception as error:
        return [_name(error)] * count


def _name(error: BaseException) -> str:
    return type(error).__name__


def _reason(answer: Answer, hangs: str) -> str:
    return hangs if answer.hangs else answer.error or f"the program ends: {answer.ended}"


class _Killer:
    """Kills a worker of the pool every 20 to 50 ms, for some seconds."""

    def __init__(self, pool: OpenPool, seconds: float) -> None:
        self._pool, self._seconds, self.kills = pool, seconds, 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> _Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _run(self) -> None:
        until, chance = time.monotonic() + self._seconds, random.Random(0)
        while time.monotonic() < until:
            time.sleep(chance.uniform(0.02, 0.05))
            with contextlib.suppress(ProcessLookupError, IndexError):
                os.kill(chance.choice(self._pool.pids()), signal.SIGKILL)
                self.kills += 1


