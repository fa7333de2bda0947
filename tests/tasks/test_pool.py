"""`holdfast.Pool` gives what `multiprocessing.Pool` gives, by all of its methods."""

from __future__ import annotations

import multiprocessing
import operator
import os
import pickle
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import deeds
import errands
import psutil
import pytest
from deeds import SQUARES, square

from holdfast import Pool, PoolBroken
from holdfast._system.cpus import Cpus
from holdfast.tasks import making

STARTS = ["zygote", "fork", "spawn", "standby"]
SOON = 20.0  # seconds that a result may take on a busy machine


@pytest.fixture(scope="module")
def stock():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        yield pool
    pool.join()


@pytest.fixture(scope="module")
def pool():
    """For tests that leave it open."""
    with Pool(2) as pool:
        pool.apply_async(int).wait()  # its thread is there now, and stays
        yield pool
    pool.join()


def odd_fails(number: int) -> int:
    if number % 2:
        raise KeyError(number)
    return number


def said(*args: object, **kwargs: object) -> tuple[object, object]:
    return args, kwargs


# -- the same results ------------------------------------------------------------------------------

USES = {
    "map": lambda pool: pool.map(square, range(10)),
    "map of a generator": lambda pool: pool.map(square, (number for number in range(10))),
    "map of nothing": lambda pool: pool.map(square, []),
    "map in chunks": lambda pool: [pool.map(square, range(10), size) for size in (1, 3, 10, 99)],
    "map of a set": lambda pool: sorted(pool.map(square, {3, 1, 2})),
    "map of a dict": lambda pool: pool.map(str, {"b": 1, "a": 2}),
    "starmap": lambda pool: pool.starmap(pow, [(2, 3), (3, 2), [5, 2]]),
    "starmap of a zip": lambda pool: pool.starmap(operator.add, zip("abc", "xyz", strict=True)),
    "starmap of nothing": lambda pool: pool.starmap(pow, iter(())),
    "starmap of iterables": lambda pool: pool.starmap(operator.add, ["ab", "cd"], chunksize=2),
    "imap": lambda pool: list(pool.imap(square, range(10))),
    "imap in chunks": lambda pool: [list(pool.imap(square, range(10), size)) for size in (1, 3, 99)],
    "imap of nothing": lambda pool: list(pool.imap(square, [])),
    "imap_unordered": lambda pool: sorted(pool.imap_unordered(square, range(10), chunksize=3)),
    "apply": lambda pool: pool.apply(said, (1, 2), {"three": 3}),
    "apply without arguments": lambda pool: pool.apply(said),
    "apply with keywords": lambda pool: pool.apply(said, kwds={"one": 1}),
    "apply of a list": lambda pool: pool.apply(said, [1, 2]),
    "apply_async": lambda pool: pool.apply_async(said, (1,), {"two": 2}).get(SOON),
    "map_async": lambda pool: pool.map_async(square, range(10)).get(SOON),
    "map_async of nothing": lambda pool: pool.map_async(square, []).get(SOON),
    "starmap_async": lambda pool: pool.starmap_async(pow, [(2, 3), (3, 2)], chunksize=1).get(SOON),
    "None": lambda pool: pool.map(print, []) + pool.map(type(None).__bool__, [None]),
}


def test_results_are_those_of_multiprocessing(pool, stock):
    assert {name: use(pool) for name, use in USES.items()} == {name: use(stock) for name, use in USES.items()}


@pytest.mark.parametrize("start", STARTS)
def test_results_are_the_same_however_workers_start(start):
    with Pool(2, start=start) as pool:
        assert pool.map(square, range(10)) == SQUARES
        assert os.getpid() not in pool.map(errands.pid_of, range(4), 1)
    pool.join()


def test_a_context_of_multiprocessing_says_how_workers_start():
    with Pool(1, context=multiprocessing.get_context("fork")) as pool:
        assert pool.map(square, range(10)) == SQUARES
        assert psutil.Process(pool.processes[0].pid).ppid() == os.getpid()  # those of the zygote are its children
    pool.join()


# -- errors ----------------------------------------------------------------------------------------

FAILING = {
    "map": lambda pool: pool.map(odd_fails, range(3)),
    "starmap": lambda pool: pool.starmap(odd_fails, [(2,), (3,), (4,)]),
    "imap": lambda pool: list(pool.imap(odd_fails, range(6))),
    "imap in chunks": lambda pool: list(pool.imap(odd_fails, range(6), 3)),
    "apply": lambda pool: pool.apply(odd_fails, (1,)),
    "apply_async": lambda pool: pool.apply_async(odd_fails, (1,)).get(SOON),
    "map_async": lambda pool: pool.map_async(odd_fails, range(3)).get(SOON),
    "too many arguments": lambda pool: pool.apply(odd_fails, (1, 2)),
}


def test_errors_are_those_of_multiprocessing(pool, stock):
    for name, use in FAILING.items():
        ours, theirs = raised_by(use, pool), raised_by(use, stock)
        assert (type(ours), ours.args) == (type(theirs), theirs.args), name


@pytest.mark.timeout(30)
def test_a_starmap_of_what_are_no_arguments_fails_and_the_pool_goes_on():
    with Pool(2) as pool:
        with pytest.raises(TypeError, match=r"(argument|object).* iterable"):
            pool.starmap(odd_fails, [2, 4])
        assert pool.map(square, range(10)) == SQUARES
    pool.join()


def raised_by(use: Callable[[Any], object], pool: Any) -> BaseException:
    try:
        use(pool)
    except Exception as error:
        return error
    raise AssertionError("it has not failed")


def test_the_error_of_a_map_is_that_of_its_first_item(pool):
    for chunksize in (1, 2, 6, 1, 2, 6):
        with pytest.raises(KeyError) as raised:
            pool.map(odd_fails, range(6), chunksize)
        assert raised.value.args == (1,)


@pytest.mark.parametrize("chunksize", [1, 3, 10])
def test_all_items_of_a_map_are_tried_although_some_fail(chunksize, pool, tmp_path):
    with pytest.raises(ZeroDivisionError):
        pool.starmap(errands.mark_and_divide, [(tmp_path, number) for number in range(10)], chunksize)
    assert sorted(path.name for path in tmp_path.iterdir()) == [str(number) for number in range(10)]


def test_a_note_says_the_call_and_the_worker(pool):
    with pytest.raises(KeyError) as raised:
        pool.map(odd_fails, range(6))
    (note,) = raised.value.__notes__
    workers = [f"in worker {seat} (pid {process.pid}), in odd_fails(1)" for seat, process in enumerate(pool.processes)]
    assert note.splitlines()[0] in workers
    assert "raise KeyError(number)" in str(raised.value.__cause__)  # the traceback of the worker


def test_a_note_shows_arguments_and_keywords_shortened(pool):
    with pytest.raises(TypeError) as raised:
        pool.apply(odd_fails, ("x" * 1000,), {"extra": [1, 2]})
    call = raised.value.__notes__[0].splitlines()[0]
    assert "odd_fails('xxx" in call
    assert "extra=[1, 2])" in call
    assert len(call) < 150


def test_an_imap_goes_on_after_an_error(pool):
    found: list[object] = []
    results = pool.imap(odd_fails, range(6))
    for _ in range(6):
        try:
            found.append(next(results))
        except KeyError as error:
            found.append(error.args)
    assert found == [0, (1,), 2, (3,), 4, (5,)]
    with pytest.raises(StopIteration):
        next(results)


# -- async results and callbacks -------------------------------------------------------------------


def test_a_result_says_whether_it_is_ready_and_went_well(pool, tmp_path):
    result = pool.apply_async(deeds.wait_for, (tmp_path / "go", 3))
    deeds.await_file(tmp_path / "began 3")
    assert not result.ready()
    with pytest.raises(ValueError, match="not ready"):
        result.successful()
    with pytest.raises(multiprocessing.TimeoutError):
        result.get(0.01)
    deeds.make(tmp_path / "go")
    result.wait(SOON)
    assert result.ready()
    assert result.successful()
    assert result.get() == result.get(0) == 9


def test_a_failed_result_raises_whenever_it_is_asked(pool):
    result = pool.apply_async(odd_fails, (1,))
    result.wait(SOON)
    assert result.ready()
    assert not result.successful()
    for _ in range(2):
        with pytest.raises(KeyError):
            result.get()


CALLS = {
    "apply_async": (lambda pool, **callbacks: pool.apply_async(square, (3,), **callbacks), 9),
    "map_async": (lambda pool, **callbacks: pool.map_async(square, range(4), **callbacks), [0, 1, 4, 9]),
    "starmap_async": (lambda pool, **callbacks: pool.starmap_async(pow, [(2, 3)], 1, **callbacks), [8]),
}


def test_callbacks_are_called_once_without_anyone_waiting(pool):
    for ask, expected in CALLS.values():
        heard: SimpleQueue[object] = SimpleQueue()
        ask(pool, callback=heard.put, error_callback=heard.put)
        assert heard.get(timeout=SOON) == expected
        assert heard.empty()


def test_the_callback_has_been_called_when_the_result_is_ready(pool):
    for number in range(50):
        heard: list[int] = []
        pool.apply_async(square, (number,), callback=heard.append).wait(SOON)
        assert heard == [number * number]


def test_the_error_callback_gets_the_first_error(pool):
    good: list[object] = []
    bad: list[BaseException] = []
    result = pool.map_async(odd_fails, range(6), 1, good.append, bad.append)
    result.wait(SOON)
    assert (good, [error.args for error in bad]) == ([], [(1,)])


def test_a_callback_may_ask_for_more(pool):
    heard: SimpleQueue[int] = SimpleQueue()

    def more(value: int) -> None:
        heard.put(value)
        if value < 5:
            pool.apply_async(operator.add, (value, 1), callback=more)

    pool.apply_async(int, callback=more)
    assert [heard.get(timeout=SOON) for _ in range(6)] == [0, 1, 2, 3, 4, 5]


# -- its life --------------------------------------------------------------------------------------


def test_a_closed_pool_takes_no_more():
    pool = Pool(1)
    pool.close()
    for use in USES.values():
        with pytest.raises(ValueError, match="Pool not running"):
            use(pool)
    with pytest.raises(ValueError, match="Pool not running"), pool:
        pass
    pool.join()


def test_a_terminated_pool_takes_no_more_and_can_be_terminated_and_joined_again():
    pool = Pool(2)
    pool.terminate()
    pool.terminate()
    pool.close()
    pool.join()
    pool.join()
    with pytest.raises(ValueError, match="Pool not running"):
        pool.map(square, range(3))


def test_what_is_not_done_when_it_is_terminated_fails(tmp_path):
    pool = Pool(2)
    result = pool.apply_async(deeds.wait_for, (tmp_path / "never",))
    deeds.await_file(tmp_path / "began 0")
    pool.terminate()
    with pytest.raises(PoolBroken, match="ended before this task was done"):
        result.get(SOON)
    pool.join()


def test_its_repr_says_how_it_is():
    pool = Pool(3)
    assert repr(pool) == "<holdfast.tasks.pool.Pool running pool_size=3>"
    pool.close()
    assert "closed" in repr(pool)
    pool.join()
    assert "ended" in repr(pool)


def test_it_cannot_be_pickled(pool):
    with pytest.raises(NotImplementedError, match="cannot be passed between processes or pickled"):
        pickle.dumps(pool)


def test_its_processes_are_its_workers(pool):
    pids = {process.pid for process in pool.processes}
    assert len(pids) == 2
    assert set(pool.map(errands.pid_of, range(20), 1)) <= pids


def test_who_waits_for_a_long_task_after_a_short_one_sleeps():
    with Pool(1) as pool:
        assert pool.map(square, range(10), chunksize=1) == SQUARES
        assert pool._works.is_prompt, "no moment is awaited, so nothing is tested"
        before = time.process_time()
        pool.apply(time.sleep, (1.0,))
        assert time.process_time() - before < 0.5
        assert not pool._works.is_prompt


def test_it_has_as_many_workers_as_this_process_may_use():
    with Pool() as pool:
        assert len(pool.processes) == len(os.sched_getaffinity(0))
    pool.join()


def test_a_worker_is_replaced_after_so_many_tasks():
    with Pool(1, maxtasksperchild=2) as pool:
        pids = pool.map(errands.pid_of, range(6), 1)
        assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [2, 2, 2]
        assert not pool.faults  # nothing has gone wrong
    pool.join()


def test_an_initializer_is_called_once_in_each_worker(tmp_path):
    with Pool(2, errands.sign_in, (tmp_path,)) as pool:
        pool.starmap(deeds.meet, [(tmp_path, number, 2) for number in range(2)], 1)
        pids = {process.pid for process in pool.processes}
        assert {int(path.name) for path in tmp_path.glob("[0-9]*")} == pids
    pool.join()


WRONG = {
    "no processes": lambda kind: kind(0),
    "fewer": lambda kind: kind(-1),
    "a word": lambda kind: kind("two"),
    "no initializer": lambda kind: kind(1, initializer=3),
    "no tasks": lambda kind: kind(1, maxtasksperchild=0),
}


def test_wrong_arguments_raise_what_multiprocessing_raises():
    for name, make in WRONG.items():
        ours, theirs = raised_by(make, Pool), raised_by(make, multiprocessing.Pool)
        assert type(ours) is type(theirs), name


OWN = {
    "start": lambda: Pool(1, start="nonsense"),
    "task_timeout": lambda: Pool(1, task_timeout=0),
    "retries": lambda: Pool(1, retries="often"),
    "initargs|iterable": lambda: Pool(1, print, 3),
}


def test_wrong_arguments_of_its_own_are_named():
    for name, make in OWN.items():
        with pytest.raises((TypeError, ValueError), match=name):
            make()


def test_wrong_arguments_of_a_map_are_refused_at_once(pool):
    for method in ("map", "starmap", "map_async", "imap", "imap_unordered"):
        for size in (0, -3):
            with pytest.raises(ValueError, match="Chunksize must be 1"):
                getattr(pool, method)(square, range(3), size)
        with pytest.raises(TypeError, match="not iterable"):
            getattr(pool, method)(square, 5)


@pytest.mark.parametrize(("quota", "seats"), [(None, 8), (2.5, 2), (0.5, 1)])
def test_there_are_as_many_processes_as_the_container_allows(monkeypatch, quota, seats):
    monkeypatch.setattr(making, "cpus", lambda: Cpus(16, 8, quota))
    assert making.default_seats() == seats


def test_what_others_decide_about_is_looked_at_by_nobody_who_does_not_hold_the_lock(pool, monkeypatch):
    """A thread that submits reads when the next deadline is while the keeper takes in results. Once in thousands of
    calls it met a dict that was being changed: `OrderedDict mutated during iteration`, out of `apply_async`."""
    lock, machine = pool._works.lock._lock, pool._works._machine
    looked, unguarded = [], []
    really = machine.next_deadline

    def look():
        looked.append(1)
        if not lock._is_owned():
            unguarded.append(1)
        return really()

    monkeypatch.setattr(machine, "next_deadline", look)
    results = [pool.apply_async(square, (n,)) for n in range(100)]
    assert [result.get() for result in results] == [n * n for n in range(100)]
    assert looked
    assert not unguarded
