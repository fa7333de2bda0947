"""The fault table of Pool and Executor: what happens in a task is the end of that task, and the pool works on."""

from __future__ import annotations

import asyncio
import functools
import gc
import multiprocessing
import os
import signal
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import deeds
import pytest
from callers import HEAD, LIMIT, Ends, run, started
from deeds import SQUARES, square

from holdfast import (
    CannotSend,
    CannotShip,
    Executor,
    HoldfastError,
    Pool,
    PoolBroken,
    RemoteError,
    TaskDied,
    TaskExited,
    TaskTimeout,
)

pytestmark = pytest.mark.timeout(45)
SOON = 20.0  # seconds that a result may take on a busy machine; a hang is longer
MIB = 1 << 20
STARTS = ("zygote", "fork", *(pytest.param(start, marks=pytest.mark.slow) for start in ("spawn", "standby")))


@pytest.fixture
def pool():
    with Pool(2) as pool:
        yield pool
        assert pool.map(square, range(10)) == SQUARES  # whatever was done to it
    pool.join()


def workers(pool: Pool, folder: Path) -> list[int]:
    """The pids of all workers, which have work at the same time."""
    count = len(pool.processes)
    results = [pool.apply_async(deeds.meet, (folder, number, count)) for number in range(count)]
    return [result.get(SOON) for result in results]


# -- deaths ----------------------------------------------------------------------------------------


def test_an_idle_worker_is_killed_and_replaced(pool, tmp_path):
    pids = workers(pool, tmp_path)
    ends = Ends(pids[:1])
    os.kill(pids[0], signal.SIGKILL)
    assert ends.come(SOON)
    assert pool.map(square, range(10)) == SQUARES


@pytest.mark.parametrize("start", STARTS)
def test_all_idle_workers_are_killed_and_replaced(start, tmp_path):
    with Pool(3, start=start) as pool:
        pids = workers(pool, tmp_path)
        ends = Ends(pids)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        assert pool.map(square, range(10)) == SQUARES
        assert ends.come(SOON)
    pool.join()


@pytest.mark.parametrize("start", ["zygote", "fork"])
def test_the_pids_of_workers_can_be_asked_for_while_they_start(start, tmp_path):
    use = f"""
    import os
    for _ in range(10):
        with Executor(2, start={start!r}) as executor:
            futures = [executor.submit(os.getpid) for _ in range(2)]
            pids = {{process.pid for process in executor.processes}}
            assert {{future.result() for future in futures}} <= pids, pids
    """
    run(tmp_path, HEAD + textwrap.dedent(use))


@pytest.mark.parametrize("start", STARTS)
def test_a_worker_killed_in_its_task_takes_only_that_task(start):
    with Pool(2, start=start) as pool:
        results = [pool.apply_async(deeds.leave_at, (number, 3)) for number in range(10)]
        with pytest.raises(TaskDied, match=r"was killed by SIGKILL .*\[HF901\]") as caught:
            results.pop(3).get(SOON)
        assert [result.get(SOON) for result in results] == SQUARES[:3] + SQUARES[4:]
    pool.join()
    assert isinstance(caught.value, BrokenProcessPool)
    assert caught.value.verdict.signal == "SIGKILL"


def test_a_worker_killed_from_outside_takes_only_its_task(pool, tmp_path):
    go = tmp_path / "go"
    results = [pool.apply_async(deeds.wait_for, (go, number)) for number in range(2)]
    os.kill(int(deeds.await_file(tmp_path / "began 1")), signal.SIGKILL)
    with pytest.raises(TaskDied):
        results[1].get(SOON)
    go.touch()
    assert results[0].get(SOON) == 0


def test_a_task_that_died_is_tried_again_when_asked_for(tmp_path):
    with Pool(2, retries=1) as pool:
        dies_once = functools.partial(deeds.leave_at, last=3, once=tmp_path / "died")
        assert pool.map(dies_once, range(10), chunksize=4) == SQUARES
        with pytest.raises(TaskDied) as caught:
            pool.apply(deeds.leave_at, (3, 3))
        assert pool.map(square, range(10)) == SQUARES
    pool.join()
    assert caught.value.attempts == 2


def test_exceptions_are_counted_apart_from_deaths(tmp_path):
    def fail_then_die(folder: Path) -> str:
        for how in ("exception", "SIGKILL"):
            deeds.leave_at(0, 0, how, folder / how)
        return "done"

    with Pool(1, retries=1) as pool:
        assert pool.apply(fail_then_die, (tmp_path,)) == "done"
    pool.join()


MAPS = {
    "map": Pool.map,
    "map_async": lambda pool, *args: pool.map_async(*args).get(SOON),
    "starmap": lambda pool, function, numbers: pool.starmap(function, [(number,) for number in numbers]),
    "imap": lambda pool, *args: list(pool.imap(*args)),
    "imap_unordered": lambda pool, *args: list(pool.imap_unordered(*args)),
}


@pytest.mark.parametrize("how", MAPS)
def test_a_death_in_a_map_is_its_error(how, pool):
    with pytest.raises(TaskDied):
        MAPS[how](pool, functools.partial(deeds.leave_at, last=3), range(10))


def test_an_imap_goes_on_behind_a_death(pool):
    results = pool.imap(functools.partial(deeds.leave_at, last=3), range(10))
    assert [next(results) for _ in range(3)] == SQUARES[:3]
    with pytest.raises(TaskDied):
        next(results)
    assert list(results) == SQUARES[4:]


def test_what_an_iterable_gave_before_it_failed_is_delivered(pool):
    def numbers() -> Iterator[int]:
        yield from range(3)
        raise ValueError("no more")

    results = pool.imap(square, numbers())
    assert [next(results) for _ in range(3)] == SQUARES[:3]
    with pytest.raises(ValueError, match="no more"):
        next(results)


def test_the_futures_of_others_complete_when_a_worker_dies():
    with Executor(2) as executor:
        futures = {executor.submit(deeds.leave_at, number, 3): number for number in range(10)}
        failed = {futures[future] for future in as_completed(futures, SOON) if future.exception()}
        assert failed == {3}
        assert executor.submit(square, 4).result(SOON) == 16
        assert len(executor.faults) == 1


def test_error_callbacks_hear_of_a_death(pool):
    heard: list[BaseException] = []
    result = pool.apply_async(deeds.kill_itself, error_callback=heard.append)
    result.wait(SOON)
    assert not result.successful()
    assert [type(error) for error in heard] == [TaskDied]


@pytest.mark.parametrize("size", [100 * MIB, pytest.param(400 * MIB, marks=pytest.mark.slow)])
def test_a_worker_killed_when_half_of_its_result_is_written(size, pool):
    other = pool.apply_async(square, (5,))
    with pytest.raises(TaskDied):
        pool.apply(deeds.return_half, (size,))
    assert other.get(SOON) == 25


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.08])
@pytest.mark.parametrize("size", [50 * MIB, pytest.param(200 * MIB, marks=pytest.mark.slow)])
def test_a_worker_killed_while_its_result_travels(size, delay, pool, tmp_path):
    result = pool.apply_async(deeds.return_much, (size, tmp_path / "pid"))
    pid = int(deeds.await_file(tmp_path / "pid"))
    time.sleep(delay)  # any moment will do: it is all there, or it is an error
    os.kill(pid, signal.SIGKILL)
    try:
        text, array = result.get(SOON)
        assert (len(text), int(array.sum())) == (size, size)
    except TaskDied:
        pass


# -- leaving ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "status"), [("os._exit(0)", 0), ("os._exit(3)", 3), ("SIGSEGV", -signal.SIGSEGV)], ids=str
)
def test_who_ends_the_process_ends_its_task(how, status, pool):
    with pytest.raises(TaskDied) as caught:
        pool.apply(deeds.leave_at, (0, 0, how))
    assert caught.value.verdict.status == status


@pytest.mark.parametrize("how", ["sys.exit()", "sys.exit(3)"])
def test_sys_exit_is_an_error_of_its_task(how, pool):
    with pytest.raises(TaskExited, match="HF904"):
        pool.apply(deeds.leave_at, (0, 0, how))


@pytest.mark.parametrize("how", ["sys.exit(3)", "KeyboardInterrupt"])
def test_what_no_except_exception_catches_leaves_the_worker_alive(how):
    with Pool(1) as pool:
        before = pool.apply(os.getpid)
        with pytest.raises((HoldfastError, KeyboardInterrupt)):
            pool.apply(deeds.leave_at, (0, 0, how))
        assert pool.apply(os.getpid) == before
    pool.join()


# -- initializers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "words"), [("exception", "no luck"), ("sys.exit(3)", "3"), ("SIGKILL", "SIGKILL")], ids=str
)
def test_an_initializer_that_fails_breaks_the_pool_and_is_named(how, words):
    with Pool(2, deeds.initialize, (how,)) as pool:
        result = pool.apply_async(square, (3,))
        with pytest.raises(PoolBroken, match="HF903") as caught:
            result.get(SOON)
        with pytest.raises(ValueError, match="not running") as refused:
            pool.map(square, range(10))
    pool.join()
    assert str(refused.value.__cause__) == str(caught.value)
    assert words in str(caught.value)
    assert isinstance(caught.value, BrokenProcessPool)


def test_an_initializer_that_fails_breaks_all_futures(tmp_path):
    def fail_when_told() -> None:
        deeds.await_file(tmp_path / "go")
        deeds.fail("no luck")

    with Executor(2, initializer=fail_when_told) as executor:
        futures = [executor.submit(square, number) for number in range(10)]
        (tmp_path / "go").touch()
        assert {type(future.exception(SOON)) for future in futures} == {PoolBroken}
        with pytest.raises(BrokenProcessPool):
            executor.submit(square, 1)


def test_the_initializer_runs_in_the_place_of_a_dead_worker_too(tmp_path):
    def mark() -> None:
        (tmp_path / f"pid {os.getpid()}").touch()

    with Pool(1, mark) as pool:
        with pytest.raises(TaskDied):
            pool.apply(deeds.kill_itself)
        pool.apply(square, (1,))
    pool.join()
    assert len(list(tmp_path.glob("pid *"))) == 2


# -- what does not travel --------------------------------------------------------------------------


def test_an_exception_that_cannot_be_pickled_is_told(pool):
    with pytest.raises(RemoteError, match="it holds a lock") as caught:
        pool.apply(deeds.raise_locked)
    assert caught.value.kind.endswith("Locked")


def test_an_exception_that_pickle_would_not_rebuild_is_itself(pool):
    with pytest.raises(deeds.Unlucky, match="step 7: no data") as caught:
        pool.apply(deeds.raise_unlucky)
    assert caught.value.step == 7


def test_an_exception_that_cannot_be_unpickled_is_itself(pool):
    with pytest.raises(deeds.Unreadable, match="as it was there"):
        pool.apply(deeds.raise_unreadable)


def test_a_result_that_cannot_be_pickled_is_named(pool):
    with pytest.raises(CannotSend, match="lock"):
        pool.apply(deeds.return_lock)


@pytest.mark.parametrize(("how", "error"), [("exception", ValueError), ("sys.exit(3)", SystemExit)])
def test_a_result_that_cannot_be_unpickled_is_an_error_of_its_task(how, error, pool):
    others = [pool.apply_async(square, (number,)) for number in range(10)]
    with pytest.raises(error):
        pool.apply_async(deeds.return_arrival, (how,)).get(SOON)
    assert [other.get(SOON) for other in others] == SQUARES


def test_an_argument_that_cannot_be_pickled_is_named(pool):
    result = pool.apply_async(square, ({"deep": [1, threading.Lock()]},))
    with pytest.raises(CannotShip, match=r"'deep'\]\[1\] \(_thread.lock\)"):
        result.get(SOON)


def test_an_argument_that_cannot_be_pickled_fails_its_future_and_no_other():
    with Executor(2) as executor:
        bad, good = executor.submit(square, threading.Lock()), executor.submit(square, 5)
        assert isinstance(bad.exception(SOON), CannotShip)
        assert good.result(SOON) == 25


def test_an_argument_that_fails_to_be_unpickled_is_an_error_of_its_task(pool):
    others = [pool.apply_async(square, (number,)) for number in range(10)]
    with pytest.raises((ValueError, HoldfastError), match="no luck"):
        pool.apply(square, (deeds.Arrives("exception"),))
    assert [other.get(SOON) for other in others] == SQUARES


def test_an_argument_that_kills_who_unpickles_it_fails_alone(pool):
    others = [pool.apply_async(square, (number,)) for number in range(10)]
    with pytest.raises(TaskDied):
        pool.apply(square, (deeds.Arrives("SIGKILL"),))
    assert [other.get(SOON) for other in others] == SQUARES


def test_nothing_of_arguments_and_results_is_kept(pool):
    argument = deeds.Tracked()
    seen = weakref.ref(argument)
    gc.disable()
    try:
        pool.apply(id, (argument,))
        del argument
        assert seen() is None
    finally:
        gc.enable()


def test_nothing_of_a_result_is_kept_in_the_worker():
    with Pool(1) as pool:
        pool.apply(deeds.return_tracked)
        assert not pool.apply(deeds.is_tracked_there)
    pool.join()


@pytest.mark.parametrize("start", ["zygote", pytest.param("spawn", marks=pytest.mark.slow)])
def test_what_a_manager_holds_passes_as_an_argument(start):
    with multiprocessing.Manager() as manager, Pool(2, start=start) as pool:
        shared = manager.dict()
        pool.starmap(_put, [(shared, number) for number in range(10)])
        assert dict(shared) == dict(enumerate(SQUARES))
    pool.join()


def _put(shared: Any, number: int) -> None:
    shared[number] = number * number


# -- functions from anywhere -----------------------------------------------------------------------


def test_a_lambda_and_a_closure(pool):
    plus = 7
    assert pool.map(lambda number: number + plus, range(3)) == [7, 8, 9]

    def add(number: int) -> int:
        return number + plus

    assert pool.map(add, range(3)) == [7, 8, 9]
    assert pool.apply(lambda: lambda: plus)() == 7


def test_a_function_of_a_module_from_a_path_that_was_added_at_run_time(tmp_path, monkeypatch):
    (tmp_path / "late_module_of_tasks.py").write_text("def triple(number):\n    return 3 * number\n")
    monkeypatch.syspath_prepend(tmp_path)
    import late_module_of_tasks

    with Pool(2) as pool:
        assert pool.map(late_module_of_tasks.triple, range(3)) == [0, 3, 6]
    pool.join()
    sys.modules.pop("late_module_of_tasks")


@pytest.mark.parametrize("start", ["auto", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_function_under_the_main_guard(start, tmp_path):
    code = f"""
    from holdfast import Executor, Pool
    if __name__ == "__main__":
        def double(number):
            return 2 * number
        with Pool(2, start={start!r}) as pool:
            print(pool.map(double, range(3)))
        with Executor(2, start={start!r}) as executor:
            print(list(executor.map(double, range(3))))
    """
    assert run(tmp_path, code) == "[0, 2, 4]\n[0, 2, 4]\n"


@pytest.mark.parametrize("start", ["auto", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_script_needs_no_main_guard_and_is_run_once(start, tmp_path):
    code = f"""
    from holdfast import Pool
    print("run")
    class Point:
        def __init__(self, x):
            self.x = x
    class Unlucky(Exception):
        pass
    def move(point):
        if point.x == 2:
            raise Unlucky
        return Point(point.x + 1)
    pool = Pool(2, start={start!r})
    moved = pool.map(move, [Point(0), Point(1)])
    print([type(point) is Point for point in moved], [point.x for point in moved])
    try:
        pool.apply(move, (Point(2),))
    except Unlucky:
        print("unlucky")
    pool.close()
    pool.join()
    """
    assert run(tmp_path, code) == "run\n[True, True] [1, 2]\nunlucky\n"


# -- tasks without end -----------------------------------------------------------------------------


def test_a_task_without_end_is_ended_with_the_line_that_it_was_at():
    with Pool(1, task_timeout=0.5) as pool:
        with pytest.raises(TaskTimeout, match="HF902") as caught:
            pool.apply(deeds.spin)
        assert pool.map(square, range(10)) == SQUARES
    pool.join()
    assert isinstance(caught.value, TimeoutError)
    line = next(number for number, text in enumerate(_source(), 1) if "here it spins" in text)
    assert "deeds.py" in str(caught.value)
    assert any(f"line {at}" in str(caught.value) or f":{at}" in str(caught.value) for at in (line, line - 1))
    assert "spin" in str(caught.value)


def _source() -> list[str]:
    return Path(deeds.__file__).read_text().splitlines()


@pytest.mark.parametrize(
    "how", ["sleeps", "holds the interpreter", "blocks signals", "swallows exceptions", "is stopped"]
)
def test_a_task_that_cannot_be_interrupted_is_ended_too(how):
    with Pool(2, task_timeout=0.5) as pool:
        result = pool.apply_async(deeds.never_end, (how,))
        assert pool.map(square, range(10)) == SQUARES
        with pytest.raises(TaskTimeout):
            result.get(SOON)
        assert pool.map(square, range(10)) == SQUARES
    pool.join()


def test_a_timeout_of_one_call(pool):
    with pytest.raises(TaskTimeout):
        pool.apply(deeds.spin, timeout=0.3)
    with pytest.raises(TaskTimeout):
        pool.map(time.sleep, [0, 1000], chunksize=1, timeout=0.5)
    with pytest.raises(TaskTimeout):
        list(pool.imap(time.sleep, [0, 1000], timeout=0.5))


def test_a_timeout_counts_from_the_beginning_of_the_task():
    with Pool(1, task_timeout=1.0) as pool:
        assert pool.map(time.sleep, [0.4] * 4, chunksize=1) == [None] * 4
    pool.join()


def test_a_future_of_a_task_without_end():
    with Executor(1, task_timeout=0.5) as executor:
        endless, next_one = executor.submit(deeds.sleep_in_c), executor.submit(square, 5)
        assert isinstance(endless.exception(SOON), TaskTimeout)
        assert next_one.result(SOON) == 25


def test_a_get_that_times_out_is_no_end_of_the_task(pool, tmp_path):
    result = pool.apply_async(deeds.wait_for, (tmp_path / "go", 5))
    with pytest.raises(multiprocessing.TimeoutError):
        result.get(timeout=0.1)
    assert not result.ready()
    (tmp_path / "go").touch()
    assert result.get(SOON) == 25


# -- callers ---------------------------------------------------------------------------------------


def test_a_task_may_make_a_pool(pool):
    assert pool.map(deeds.squares_of_a_pool, [3, 10]) == [SQUARES[:3], SQUARES]


def test_a_pool_made_in_a_thread_outlives_it():
    made: list[Pool] = []
    thread = threading.Thread(target=lambda: made.append(Pool(2)))
    thread.start()
    thread.join()
    with made[0] as pool:
        assert pool.map(square, range(10)) == SQUARES
    pool.join()


def test_a_pool_used_first_in_a_thread_outlives_it():
    with Pool(2) as pool:
        thread = threading.Thread(target=lambda: pool.map(square, range(10)))
        thread.start()
        thread.join()
        assert pool.map(square, range(10)) == SQUARES
    pool.join()


def test_many_threads_submit_at_once_and_each_gets_its_own(pool):
    wrong: list[object] = []

    def use(base: int) -> None:
        numbers = range(base, base + 100)
        results = [pool.apply_async(square, (number,)) for number in numbers]
        wrong.extend(n for n, result in zip(numbers, results, strict=True) if result.get(SOON) != n * n)
        wrong.extend(n for n, got in zip(numbers, pool.map(square, numbers), strict=True) if got != n * n)

    threads = [threading.Thread(target=use, args=(base,)) for base in range(0, 1000, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_many_threads_wait_while_workers_die(tmp_path):
    right: list[int] = []

    def use(executor: Executor, base: int) -> None:
        dies_once = functools.partial(deeds.leave_at, last=base + 3, once=tmp_path / f"died {base}")
        right.extend(executor.map(dies_once, range(base, base + 20)))

    with Executor(2, retries=5) as executor:
        threads = [threading.Thread(target=use, args=(executor, base)) for base in range(0, 100, 20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(right) == [number * number for number in range(100)]


def test_futures_work_with_asyncio():
    async def use(executor: Executor) -> list[int]:
        loop = asyncio.get_running_loop()
        first = asyncio.wrap_future(executor.submit(square, 3))
        second = loop.run_in_executor(executor, square, 4)
        died = loop.run_in_executor(executor, deeds.kill_itself)
        with pytest.raises(TaskDied):
            await asyncio.wait_for(died, SOON)
        return await asyncio.wait_for(asyncio.gather(first, second), SOON)

    with Executor(2) as executor:
        assert asyncio.run(use(executor)) == [9, 16]


def test_a_callback_that_raises_does_not_end_the_pool(tmp_path):
    use = """
    with Pool(2) as pool:
        first = pool.apply_async(deeds.square, (3,), callback=lambda result: 1 / 0)
        print(first.get(20), pool.map(deeds.square, range(3)))
    """
    with started(tmp_path, HEAD + textwrap.dedent(use)) as program:
        out, err = program.communicate(timeout=LIMIT)
    assert (program.returncode, out) == (0, "9 [0, 1, 4]\n")
    assert "ZeroDivisionError" in err
