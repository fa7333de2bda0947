"""When the trainer itself is forked, and what is said about it."""

from __future__ import annotations

import gc
import threading

import pytest
from programs import run
from samples import Holds, Plain

from holdfast import CannotShip, DataLoader
from holdfast._engine.forking import ForkWarning
from holdfast._system.threads_at_fork import held_locks

LOCK = threading.Lock()


@pytest.fixture
def another_thread():
    """It holds a lock of this module."""
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with LOCK:
            held.set()
            release.wait()

    thread = threading.Thread(target=hold, name="holder")
    thread.start()
    held.wait()
    yield thread
    release.set()
    thread.join()


def test_a_fork_that_was_asked_for_warns_of_threads_and_held_locks(another_thread):
    loader = DataLoader(Plain(), batch_size=4, num_workers=1, start="fork", timeout=30)
    with pytest.warns(ForkWarning) as warned:
        list(loader)
    (warning,) = warned
    assert "holder" in str(warning.message)
    assert "test_fork_rules.LOCK" in str(warning.message)
    assert warning.filename == __file__


def test_without_a_safe_fork_the_refusal_says_so(another_thread):
    loader = DataLoader(Holds(threading.Lock()), num_workers=1)
    with pytest.raises(CannotShip, match=r"fork +not safe .*holder") as refusal:
        iter(loader)
    assert refusal.value.path == "dataset.member"


@pytest.mark.parametrize("start", ["zygote", "spawn", "standby"])
def test_a_way_that_was_asked_for_is_not_exchanged(start):
    with pytest.raises(CannotShip) as refusal:
        iter(DataLoader(Holds(threading.Lock()), num_workers=1, start=start))
    assert not refusal.value.no_fork


def test_alone_the_trainer_is_forked_for_what_cannot_be_shipped():
    code = """
        import threading, warnings
        from holdfast import DataLoader
        from samples import Holds
        loader = DataLoader(Holds(threading.Lock()), batch_size=4, num_workers=1, timeout=30)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            print(len(list(loader)))
        print(*[warning.message for warning in warned if "multi-threaded" not in str(warning.message)])
    """
    count, warning = run(code).splitlines()
    assert count == "6"
    assert warning.startswith("dataset.member (_thread.lock) cannot be pickled")


def test_a_modules_own_lock_is_named_however_many_others_are_held(another_thread):
    nameless = [threading.Lock() for _ in range(200)]
    for lock in nameless:
        lock.acquire()
    assert "test_fork_rules.LOCK" in held_locks()


def test_a_modules_own_lock_is_named_in_a_program_that_has_frozen_its_objects(another_thread):
    gc.freeze()
    try:
        assert "test_fork_rules.LOCK" in held_locks()
    finally:
        gc.unfreeze()
