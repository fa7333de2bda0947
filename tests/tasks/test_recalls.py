"""Tasks that were sent ahead to a worker that turned out slow."""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path

import pytest

from holdfast import CannotShip, Pool, PoolBroken


def once(task: tuple[Path, int, bool]) -> int:
    """Fails when it is called a second time."""
    folder, number, is_slow = task
    os.close(os.open(folder / str(number), os.O_CREAT | os.O_EXCL))
    if is_slow:
        time.sleep(0.02)
    return number


def recalls(pool: Pool) -> int:
    story = pool._works._machine.story
    return sum(type(command).__name__ == "Recall" for _, _, commands in story for command in commands)


def test_each_is_done_once_by_whoever_is_free(tmp_path):
    draw = random.Random(0).random
    with Pool(3) as pool:
        tasks = [(tmp_path, number, draw() < 0.03) for number in range(1000)]
        assert pool.map(once, tasks, chunksize=1) == list(range(1000))
        assert not pool.faults
    pool.join()


def wait_for(task: tuple[Path, int]) -> int:
    """The first one waits for all the others."""
    folder, number = task
    (folder / str(number)).touch()
    while number == 0 and len(list(folder.iterdir())) < 6:
        time.sleep(0.001)
    return number


def test_a_task_may_wait_for_those_behind_it(tmp_path):
    (tmp_path / "short").mkdir()
    (tmp_path / "long").mkdir()
    with Pool(2) as pool:
        pool.map(wait_for, [(tmp_path / "short", number) for number in range(1, 60)], chunksize=1)
        before = recalls(pool)
        assert pool.map(wait_for, [(tmp_path / "long", number) for number in range(6)], chunksize=1) == list(range(6))
        assert recalls(pool) > before, "nothing was sent ahead, so nothing was tested"
    pool.join()


def test_an_item_that_cannot_be_packed_fails_alone():
    seen: list[object] = []
    with Pool(2) as pool:
        results = pool.map_async(len, ["a", "bc", [threading.Lock()], "def"], chunksize=4, error_callback=seen.append)
        with pytest.raises(CannotShip, match=r"argument\[0\] \(_thread.lock\)"):
            results.get(20)
        assert len(seen) == 1
        assert results._values == [1, 2, None, 3]
    pool.join()


def test_a_callback_may_end_the_pool():
    pool = Pool(1)
    assert pool.apply_async(abs, (-1,), callback=lambda _: pool.terminate()).get(20) == 1
    pool.join()
    with pytest.raises(ValueError, match="not running"):
        pool.apply(abs, (1,))


def test_nobody_waits_for_results_of_a_pool_that_has_ended():
    pool = Pool(1)
    results = pool.imap(abs, range(10))
    assert next(results) == 0
    pool.terminate()
    with pytest.raises(PoolBroken):
        list(results)
    pool.join()
