"""Futures of an executor are as light as they can be, and futures all the same."""

from __future__ import annotations

import concurrent.futures
import gc
import threading

import pytest

from holdfast.tasks.futures import Future


def conditions() -> int:
    return sum(type(one) is threading.Condition for one in gc.get_objects())


def test_a_future_has_what_every_future_has():
    """`concurrent.futures.wait` and others use the attributes."""
    standard, ours = vars(concurrent.futures.Future()), vars(Future())
    assert {name: type(value) for name, value in ours.items() if name != "_condition"} == {
        name: type(value) for name, value in standard.items() if name != "_condition"
    }


def test_one_that_nobody_waits_for_has_no_condition():
    before = conditions()
    futures = [Future() for _ in range(100)]
    for number, future in enumerate(futures):
        assert future.set_running_or_notify_cancel()
        future.set_result(number)
    assert [future.result() for future in futures] == list(range(100))
    assert conditions() <= before


def test_all_who_wait_for_one_are_woken():
    future: Future[str] = Future()
    came: list[str] = []
    threads = [threading.Thread(target=lambda: came.append(future.result(60))) for _ in range(4)]
    for thread in threads:
        thread.start()
    while future._condition._waiting < 4:
        pass
    future.set_result("here")
    for thread in threads:
        thread.join()
    assert came == ["here"] * 4


def test_what_somebody_waited_with_needs_no_garbage_collector():
    before = conditions()
    gc.disable()
    try:
        with pytest.raises(concurrent.futures.TimeoutError):
            Future().result(timeout=0.01)
        assert conditions() == before
    finally:
        gc.enable()


def test_who_waits_in_vain_can_wait_again():
    future: Future[None] = Future()
    with pytest.raises(concurrent.futures.TimeoutError):
        future.result(timeout=0.01)
    with pytest.raises(concurrent.futures.TimeoutError):
        future.exception(timeout=0.01)
    future.set_exception(KeyError("late"))
    with pytest.raises(KeyError):
        future.result()


def test_a_cancelled_one_says_so_to_all_who_wait_for_several():
    futures: list[Future[int]] = [Future(), Future()]
    both = threading.Thread(target=concurrent.futures.wait, args=(futures, 60))
    both.start()
    while not all(future._waiters for future in futures):
        pass
    assert futures[0].cancel()
    assert not futures[0].set_running_or_notify_cancel()
    futures[1].set_result(1)
    both.join()
    assert list(concurrent.futures.as_completed([futures[1]], timeout=60)) == [futures[1]]
    with pytest.raises(concurrent.futures.CancelledError):
        futures[0].result()
