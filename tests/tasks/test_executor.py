"""`holdfast.Executor` is an executor of `concurrent.futures`: its futures work wherever futures do."""

from __future__ import annotations

import asyncio
import concurrent.futures
import operator
import os
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, FIRST_EXCEPTION, ProcessPoolExecutor

import deeds
import errands
import pytest
from deeds import SQUARES, square

from holdfast import Executor

SOON = 20.0


@pytest.fixture(scope="module")
def executor(tmp_path_factory):
    """For tests that leave it running and idle, with both of its workers."""
    folder = tmp_path_factory.mktemp("meeting")
    with Executor(2) as executor:
        concurrent.futures.wait([executor.submit(deeds.meet, folder, number, 2) for number in range(2)])
        yield executor


def said(*args: object, **kwargs: object) -> tuple[object, object]:
    return args, kwargs


@pytest.mark.parametrize("start", ["zygote", "fork", "spawn", "standby"])
def test_it_works_however_workers_start(start):
    with Executor(2, start=start) as executor:
        assert list(executor.map(square, range(10))) == SQUARES


def test_it_is_an_executor_and_starts_nobody_before_there_is_work():
    with Executor(2) as executor:
        assert isinstance(executor, concurrent.futures.Executor)
        assert executor.processes == []
        executor.submit(int).result(SOON)
        assert len(executor.processes) == 1


def test_a_future_has_the_result_or_the_error(executor):
    future = executor.submit(said, 1, fn=2, self=3)  # names of its own parameters, too
    assert future.result(SOON) == ((1,), {"fn": 2, "self": 3})
    assert future.exception() is None
    assert future.done()
    failed = executor.submit(operator.truediv, 1, 0)
    assert isinstance(failed.exception(SOON), ZeroDivisionError)
    with pytest.raises(ZeroDivisionError) as raised:
        failed.result()
    assert "truediv(1, 0)" in raised.value.__notes__[0]


def test_callbacks_of_futures(executor):
    heard: list[int] = []
    future = executor.submit(square, 7)
    future.add_done_callback(lambda done: heard.append(done.result()))
    concurrent.futures.wait([future], SOON)
    executor.submit(int).result(SOON)  # the one before has been told of by then
    assert heard == [49]


def test_as_completed_and_wait(executor, tmp_path):
    slow = executor.submit(deeds.wait_for, tmp_path / "go", 5)
    quick = [executor.submit(square, number) for number in range(4)]
    completed = concurrent.futures.as_completed([slow, *quick], SOON)
    assert sorted(next(completed).result() for _ in range(4)) == [0, 1, 4, 9]
    done, left = concurrent.futures.wait([slow, quick[0]], SOON, FIRST_COMPLETED)
    assert (done, left) == ({quick[0]}, {slow})
    failed = executor.submit(operator.truediv, 1, 0)
    assert failed in concurrent.futures.wait([slow, failed], SOON, FIRST_EXCEPTION).done
    assert slow.running()
    deeds.make(tmp_path / "go")
    assert next(completed).result() == 25
    assert concurrent.futures.wait([slow, *quick], SOON, ALL_COMPLETED).not_done == set()


def test_asyncio(executor):
    async def all_of_them() -> list[object]:
        loop = asyncio.get_running_loop()
        wrapped = [asyncio.wrap_future(executor.submit(square, number)) for number in range(5)]
        called = [loop.run_in_executor(executor, square, number) for number in range(5)]
        failing = loop.run_in_executor(executor, operator.truediv, 1, 0)
        return await asyncio.gather(*wrapped, *called, failing, return_exceptions=True)

    *squares, error = asyncio.run(all_of_them())
    assert squares == [0, 1, 4, 9, 16] * 2
    assert isinstance(error, ZeroDivisionError)


# -- map -------------------------------------------------------------------------------------------

MAPS = {
    "one": lambda executor: list(executor.map(square, range(10))),
    "chunks": lambda executor: list(executor.map(square, range(10), chunksize=3)),
    "two of unequal length": lambda executor: list(executor.map(pow, [2, 3, 4], [5, 2])),
    "of nothing": lambda executor: list(executor.map(square, [])),
    "a generator": lambda executor: list(executor.map(str, (letter for letter in "abc"))),
}


def test_map_gives_what_the_stock_one_gives(executor):
    with ProcessPoolExecutor(2) as stock:
        assert {name: use(executor) for name, use in MAPS.items()} == {name: use(stock) for name, use in MAPS.items()}


def test_map_raises_in_its_place_and_ends(executor):
    results = executor.map(operator.truediv, [1, 1, 1], [1, 0, 2])
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(results) == []


def test_map_takes_all_items_at_once_and_works_before_it_is_asked(executor, tmp_path):
    numbers = iter(range(20))
    results = executor.map(errands.mark, [tmp_path] * 20, numbers)
    assert list(numbers) == []
    deeds.await_file(tmp_path / "19")
    assert list(results) == list(range(20))


def test_the_timeout_of_a_map_counts_from_its_call(executor, tmp_path):
    items = [(0, -1, tmp_path / "go"), (1, 1, tmp_path / "go")]
    results = executor.map(errands.wait_at, items, timeout=1)
    assert next(results) == 0
    with pytest.raises(TimeoutError):
        next(results)
    deeds.make(tmp_path / "go")


def test_a_chunk_has_at_least_one_item(executor):
    with pytest.raises(ValueError, match="chunksize must be >= 1"):
        executor.map(square, [1], chunksize=0)


# -- cancelling and the end ------------------------------------------------------------------------


def test_what_waits_can_be_cancelled_and_what_runs_cannot(tmp_path):
    with Executor(1) as executor:
        running = executor.submit(deeds.wait_for, tmp_path / "go")
        deeds.await_file(tmp_path / "began 0")
        waiting = executor.submit(errands.mark, tmp_path, 7)
        assert not running.cancel()
        assert waiting.cancel()
        assert waiting.cancelled()
        with pytest.raises(concurrent.futures.CancelledError):
            waiting.result(SOON)
        deeds.make(tmp_path / "go")
        assert running.result(SOON) == 0
        assert executor.submit(square, 3).result(SOON) == 9
        assert waiting in concurrent.futures.wait([waiting], SOON).done
    assert not (tmp_path / "7").exists()


@pytest.mark.parametrize("wait", [True, False])
def test_shutdown_does_what_was_asked_before(wait):
    executor = Executor(2)
    futures = [executor.submit(square, number) for number in range(10)]
    mapped = executor.map(square, range(10))
    executor.shutdown(wait=wait)
    assert [future.result(SOON) for future in futures] == list(mapped) == SQUARES
    for use in (lambda: executor.submit(square, 1), lambda: executor.map(square, [1])):
        with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
            use()
    executor.shutdown()


def test_shutdown_cancels_what_waits_when_told_to(tmp_path):
    executor = Executor(1)
    running = executor.submit(deeds.wait_for, tmp_path / "go", 2)
    deeds.await_file(tmp_path / "began 2")
    futures = [executor.submit(square, number) for number in range(5)]
    assert futures[0].cancel()
    executor.shutdown(wait=False, cancel_futures=True)
    assert all(future.cancelled() for future in futures)
    assert concurrent.futures.wait(futures, SOON).not_done == set()
    deeds.make(tmp_path / "go")
    executor.shutdown(cancel_futures=True)
    assert running.result(0) == 4


def test_an_executor_that_was_not_used_can_be_shut_down_twice():
    executor = Executor(2)
    executor.shutdown(cancel_futures=True)
    executor.shutdown()


def test_a_worker_is_replaced_after_so_many_calls():
    with Executor(1, max_tasks_per_child=2) as executor:
        pids = [executor.submit(os.getpid).result(SOON) for _ in range(6)]
        assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [2, 2, 2]


def test_an_initializer_is_called_in_each_worker(tmp_path):
    with Executor(2, initializer=errands.sign_in, initargs=(tmp_path,)) as executor:
        futures = [executor.submit(deeds.meet, tmp_path, number, 2) for number in range(2)]
        assert {future.result(SOON) for future in futures} == {int(path.name) for path in tmp_path.glob("[0-9]*")}


WRONG = {
    "no workers": {"max_workers": 0},
    "fewer": {"max_workers": -1},
    "no initializer": {"initializer": 3},
    "no calls": {"max_tasks_per_child": 0},
    "a word": {"max_tasks_per_child": "2"},
}


def test_wrong_arguments_raise_what_the_stock_one_raises():
    for name, arguments in WRONG.items():
        with pytest.raises((TypeError, ValueError)) as ours:
            Executor(**arguments)
        with pytest.raises(ours.type) as theirs:
            ProcessPoolExecutor(**arguments)
        assert str(ours.value) == str(theirs.value), name
