"""Calls that are tried again: how often, after what, and what the ledger says."""

from __future__ import annotations

import os
from pathlib import Path

import deeds
import errands
import pytest
from deeds import SQUARES, square

from holdfast import Executor, Pool, Replace, Retry, TaskDied


def counted(folder: Path, number: int) -> int:
    """Which attempt this is, from 1."""
    attempt = len(list(folder.glob(f"{number}.*"))) + 1
    (folder / f"{number}.{attempt}").touch()
    return attempt


def fails_until(folder: Path, number: int, last: int, kind: type[Exception] = OSError) -> int:
    if counted(folder, number) <= last:
        raise kind(number)
    return number * number


def goes_wrong(folder: Path, ways: str) -> str:
    """At each attempt the next way: d dies, e raises."""
    attempt = counted(folder, 0)
    if attempt <= len(ways):
        if ways[attempt - 1] == "d":
            deeds.kill_itself()
        raise OSError(attempt)
    return "done"


def leave_at_5(number: int) -> int:
    return deeds.leave_at(number, 5)


@pytest.fixture
def quick() -> Retry:
    return Retry(2, backoff=0)


def test_without_retries_a_call_is_made_once(tmp_path):
    with Pool(1) as pool:
        with pytest.raises(OSError, match="0"):
            pool.apply(fails_until, (tmp_path, 0, 1))
        assert [(fault.kind, fault.action, fault.attempts) for fault in pool.faults] == [("exception", "raised", 1)]
    assert len(list(tmp_path.iterdir())) == 1


def test_an_exception_is_tried_again_as_often_as_allowed(tmp_path, quick):
    with Pool(2, retries=quick) as pool:
        assert pool.starmap(fails_until, [(tmp_path, n, n % 3) for n in range(10)], 5) == SQUARES
        assert pool.faults.counts() == {("exception", "tried again"): 9}
        with pytest.raises(OSError, match="77"):
            pool.apply(fails_until, (tmp_path, 77, 3))
        assert [fault.action for fault in pool.faults][-3:] == ["tried again", "tried again", "raised"]
        assert pool.faults[-1].attempts == 3


@pytest.mark.parametrize("ways", ["de", "ed"])
def test_deaths_and_exceptions_are_counted_apart(ways, tmp_path):
    with Pool(1, retries=1) as pool:
        assert pool.apply(goes_wrong, (tmp_path, ways)) == "done"
        assert pool.faults.counts() == {("death", "tried again"): 1, ("exception", "tried again"): 1}


def test_two_deaths_are_too_many_for_one_retry(tmp_path):
    with Pool(1, retries=1) as pool, pytest.raises(TaskDied) as raised:
        pool.apply(goes_wrong, (tmp_path, "edd"))
    assert raised.value.attempts == 2
    assert "tried 2 times" in str(raised.value)
    assert [(fault.kind, fault.action) for fault in pool.faults] == [
        ("exception", "tried again"),
        ("death", "tried again"),
        ("death", "raised"),
    ]


def test_a_policy_says_what_is_tried_again(tmp_path):
    with Pool(1, retries=Retry(3, on=OSError, backoff=0)) as pool:
        assert pool.apply(fails_until, (tmp_path, 1, 2, ConnectionResetError)) == 1
        with pytest.raises(KeyError):
            pool.apply(fails_until, (tmp_path, 2, 1, KeyError))
        with pytest.raises(TaskDied):
            pool.apply(goes_wrong, (tmp_path, "d"))
        assert [fault.action for fault in pool.faults] == ["tried again", "tried again", "raised", "raised"]


def test_a_value_in_place_of_what_fails(tmp_path, quick):
    with Pool(2, retries=Replace(-1)) as pool:
        assert pool.starmap(fails_until, [(tmp_path, n, n % 2) for n in range(4)], 4) == [0, -1, 4, -1]
        assert pool.map(leave_at_5, range(4, 7), 3) == [16, -1, 36]
        assert pool.faults.counts() == {("exception", "replaced"): 2, ("death", "replaced"): 1}
    with Pool(1, retries=quick | Replace(lambda fault: fault.index)) as pool:
        assert pool.starmap(fails_until, [(tmp_path, 20 + n, 9 * n) for n in range(2)]) == [400, 1]
        assert [fault.action for fault in pool.faults] == ["tried again", "tried again", "replaced"]


def test_what_is_wrong_with_the_program_is_not_tried_again(tmp_path):
    with Pool(1, retries=Retry(3, backoff=0) | Replace(0)) as pool:
        for kind in (NameError, ImportError, NotImplementedError):
            with pytest.raises(kind):
                pool.apply(fails_until, (tmp_path, 5, 9, kind))
        assert pool.faults.counts() == {("exception", "raised"): 3}
    assert len(list(tmp_path.iterdir())) == 3


def test_a_line_of_the_ledger_says_all_of_it(tmp_path):
    with Pool(1) as pool:
        pool.map(square, range(10))
        pid = pool.processes[0].pid
        with pytest.raises(TaskDied):
            pool.map(leave_at_5, range(10), 1)
        (fault,) = pool.faults
        assert (fault.kind, fault.action, fault.index, fault.pid, fault.seat) == ("death", "raised", 15, pid, 0)
        assert fault.where == "leave_at_5(5)"
        assert str(fault).startswith("task 15: leave_at_5(5)")
        assert "SIGKILL" in str(pool.faults)


def test_others_go_on_while_one_waits_to_be_tried_again(tmp_path):
    with Executor(1, retries=Retry(1, backoff=0.5)) as executor:
        first = executor.submit(fails_until, tmp_path, 0, 1)
        others = [executor.submit(square, number) for number in range(10)]
        assert [future.result() for future in others] == SQUARES
        assert not first.done()
        assert first.result() == 0


def test_a_worker_that_dies_in_its_idle_time_is_in_the_ledger_too():
    with Pool(1) as pool:
        pid = pool.apply(os.getpid)
        os.kill(pid, 9)
        assert pool.apply(errands.pid_of, (0,)) != pid
        assert [(fault.kind, fault.action, fault.index) for fault in pool.faults] == [("death", "restarted", None)]
