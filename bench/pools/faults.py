"""What becomes of a pool's tasks when a worker is killed, and when a task hangs.

A case is eight tasks, each submitted by itself where the pool knows single tasks, of which one goes wrong when it is
first tried; then one more task, to see whether the pool goes on. What a pool offers against it is used: retries, and a
limit of a second for each task.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.contest import Cannot, FaultResult
from bench.pools import POOLS, tasks
from bench.pools.alone import Answer, alone, in_short
from bench.pools.contract import OpenPool, Wanted

CASES = {
    "killed": ("killed_once", "a task kills its worker when it is first tried"),
    "hangs": ("hangs_once", "a task does not return when it is first tried"),
}
FAULTS = {fault: what for fault, (_, what) in CASES.items()}
OUTCOMES = {
    "finishes": "all results came, and are right",
    "loss": "no error, but results are missing or wrong",
    "error": "an exception in place of results",
    "ends": "the whole program was ended",
    "hangs": "results that never come",
    "cannot": "not tried",
}
NUMBERS = range(8)
LIMIT = 15.0  # seconds, after the pool has started
START = 45.0
CONTENDERS = tuple(name for name in POOLS if name not in ("torch.multiprocessing.Pool", "Ray Pool"))


def run(quick: bool, only: frozenset[str] | None) -> Iterator[FaultResult]:
    """Each case in a program of its own. `quick`: what hangs is waited for only a third of the time."""
    patience = LIMIT / 3 if quick else LIMIT
    for fault, (task, _) in CASES.items():
        for contender in CONTENDERS:
            if only is not None and contender not in only:
                continue
            with tempfile.TemporaryDirectory() as directory:
                mark, arguments = str(Path(directory, "tried")), {"contender": contender, "task": task}
                answer = alone("bench.pools.faults:case", START + patience, mark=mark, patience=patience, **arguments)
            yield FaultResult(contender, fault, *_judged(answer))


def case(contender: str, task: str, mark: str, patience: float) -> dict[str, Any]:
    """In a program of its own. By number, what came: a result, or a text that says what is wrong."""
    wanted = Wanted(retries=1, task_timeout=1.0 if task == "hangs_once" else None)
    pool = POOLS[contender].open()(wanted)
    pool.map(tasks.short, range(4), chunks=False)
    began = time.monotonic()
    came = _each(pool, getattr(tasks, task), mark, began + patience)
    seconds = time.monotonic() - began
    return {"came": came, "after": "" if "hangs" in came else _after(pool), "seconds": seconds}


def _each(pool: OpenPool, task: Any, mark: str, until: float) -> list[Any]:
    items = [(number, mark) for number in NUMBERS]
    try:
        handles = pool.submit(task, items)
    except Cannot:
        return _at_once(pool, task, items)
    except Exception as error:
        return [in_short(error)] * len(items)
    came: list[Any] = []
    for handle in handles:
        try:
            came.append(pool.result(handle, max(0.01, until - time.monotonic())))
        except Exception as error:
            came.append("hangs" if time.monotonic() >= until else in_short(error))
    return came


def _at_once(pool: OpenPool, task: Any, items: list[tuple[int, str]]) -> list[Any]:
    try:
        return pool.map(task, items, chunks=False)
    except Exception as error:
        return [in_short(error)] * len(items)


def _after(pool: OpenPool) -> str:
    """What becomes of one more task. It is waited for only a while: a pool that is lost may hang."""
    answers: list[Any] = []
    one_more = threading.Thread(target=lambda: answers.append(pool.call(tasks.short, 21)), daemon=True)
    one_more.start()
    one_more.join(5)
    if not answers:
        return "the pool is lost"
    return "the pool goes on" if answers == [42] else "the next task has a result that is not its own"


def _judged(answer: Answer) -> tuple[str, float, str]:
    """The outcome, its seconds and a text."""
    if answer.error:
        return "error", answer.seconds, answer.error
    if answer.ended:
        return "ends", answer.seconds, answer.ended
    if answer.value is None:
        return "hangs", answer.seconds, "nothing returns"
    came, seconds = answer.value["came"], answer.value["seconds"]
    right = sum(value == 2 * number for number, value in enumerate(came))
    if right == len(NUMBERS):
        return "finishes", seconds, ""
    if "hangs" in came:
        return "hangs", seconds, f"{came.count('hangs')} of {len(NUMBERS)} results never come"
    errors = [value for value in came if isinstance(value, str)]
    if not errors:
        return "loss", seconds, f"{len(NUMBERS) - right} of {len(NUMBERS)} results are missing or wrong"
    return "error", seconds, f"{errors[0]} ({len(errors)} of {len(NUMBERS)} tasks; {answer.value['after']})"
