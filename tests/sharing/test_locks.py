"""A lock that excludes threads and processes, and that nobody can die with."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading

import numpy
import psutil
import pytest
import receivers
import torch

from holdfast.sharing import lock_of, share

TIMES = 300


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_two_processes_and_two_threads_give_the_exact_total(kind, method):
    x = share(torch.zeros(1, dtype=torch.int64))
    context = multiprocessing.get_context(method)
    processes = [context.Process(target=receivers.add_under_lock, args=(x, TIMES)) for _ in range(2)]
    threads = [threading.Thread(target=receivers.add_under_lock, args=(x, TIMES)) for _ in range(2)]
    for worker in (*processes, *threads):
        worker.start()
    for worker in (*processes, *threads):
        worker.join()
    for process in processes:
        process.close()
    assert x.item() == 4 * TIMES


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_killed_holder_leaves_it_free_and_the_next_one_is_told(kind, method):
    x = share(numpy.zeros(1))
    context = multiprocessing.get_context(method)
    ready = context.Event()
    holder = context.Process(target=receivers.hold_and_wait, args=(x, ready))
    holder.start()
    assert ready.wait(60)
    assert not x.lock.acquire(blocking=False)
    assert not x.lock.acquire(timeout=0.05)
    os.kill(holder.pid, signal.SIGKILL)
    assert x.lock.acquire(timeout=60)
    assert x.lock.abandoned
    x.lock.release()
    with x.lock:
        assert not x.lock.abandoned
    holder.join()
    holder.close()


@pytest.mark.once
def test_a_holder_that_forked_is_not_survived_by_its_lock(kind):
    """The fork has its own opened file, so the lock does not live on in it."""
    x = share(numpy.zeros(1))
    told, tells = os.pipe()
    holder = os.fork()
    if holder == 0:
        x.lock.acquire()
        if os.fork() == 0:
            os.write(tells, f"{os.getpid()} {x.lock.acquire(blocking=False)}".encode())
            signal.pause()
        signal.pause()
    heir, _, got_it = os.read(told, 100).decode().partition(" ")
    assert got_it == "False"
    assert not x.lock.acquire(blocking=False)
    os.kill(holder, signal.SIGKILL)
    assert x.lock.acquire(timeout=60)
    x.lock.release()
    process = psutil.Process(int(heir))
    process.kill()
    process.wait(60)  # what it holds, it holds to the end
    os.waitpid(holder, 0)
    os.close(told)
    os.close(tells)


def test_the_thread_that_has_it_may_take_it_again_and_no_other_may_give_it_back():
    lock = share(numpy.zeros(1)).lock
    with lock, lock:
        pass
    lock.acquire()
    errors = []

    def release() -> None:
        try:
            lock.release()
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=release)
    thread.start()
    thread.join()
    assert errors == ["cannot release a lock that this thread does not hold"]
    lock.release()
    with pytest.raises(RuntimeError):
        lock.release()


def test_a_fork_of_a_holder_does_not_hold_it(kind):
    x = share(numpy.zeros(1))
    with x.lock:
        child = os.fork()
        if child == 0:
            os._exit(int(x.lock.acquire(blocking=False)))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert not pickle.loads(pickle.dumps(x)).lock.abandoned


def test_one_lock_for_all_that_was_shared_together():
    x = share({"a": numpy.zeros(2), "b": torch.zeros(2), "c": ["x"] * 2000})
    assert x["a"].lock is x["b"].lock is x["c"].lock is x["b"][1:].lock is lock_of(x)
    model = share(torch.nn.Linear(2, 2))
    assert lock_of(model) is model.weight.lock is lock_of(model.bias.data)
    with pytest.raises(TypeError, match="not shared"):
        lock_of(torch.zeros(3))
    with pytest.raises(TypeError, match="does not travel"):
        pickle.dumps(lock_of(model))
