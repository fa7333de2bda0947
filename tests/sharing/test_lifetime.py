"""Memory goes with the last process that has it, and nothing is left behind, whoever is killed."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import numpy
import psutil
import pytest
import receivers
import torch

from holdfast.errors import SharedGone
from holdfast.sharing import files, flight, share

SIZE = 64 << 20


def shared_bytes() -> int:
    """What all processes together have in shared memory, with and without a name."""
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("Shmem:")) << 10


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_it_is_freed_when_the_last_view_is_dropped(kind):
    before = descriptors()
    x = share(torch.ones(1000))
    view = x[10:][::2].numpy()
    del x
    gc.collect()
    assert view[3] == 1
    assert descriptors() > before
    del view
    gc.collect()
    assert descriptors() == before


def test_a_thousand_arrays_cost_as_many_descriptors_as_one():
    before = descriptors()
    one = share(numpy.zeros(3))
    cost = descriptors() - before
    many = share([numpy.zeros(3) for _ in range(1000)])
    assert descriptors() - before == 2 * cost
    assert len(many) + len(one) == 1003


@pytest.mark.once
def test_another_process_keeps_what_the_first_has_dropped(kind):
    context = multiprocessing.get_context("spawn")
    queue, answers = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=receivers.keep_and_read, args=(share(numpy.arange(5)), queue, answers))
    process.start()
    assert answers.get() == "here"
    gc.collect()
    queue.put("read")
    assert answers.get() == 10
    process.join()
    process.close()
    queue.close()
    answers.close()


PROGRAM = """
    import multiprocessing, sys, time, numpy, tempfile
    sys.path.insert(0, {here!r})
    import receivers
    from holdfast.sharing import files, share

    if __name__ == "__main__":
        files.ANONYMOUS = {anonymous}
        tempfile.tempdir = {directory!r}
        x = share(numpy.ones({size}, "u1"))
        for _ in range(2):
            multiprocessing.get_context("spawn").Process(target=receivers.keep, args=(x,)).start()
        time.sleep(600)
"""


def kill_all_of(tmp_path, anonymous: bool) -> None:
    """A program that shares something with two processes, all of them killed at once."""
    here = os.path.dirname(__file__)
    program = tmp_path / "program.py"
    code = PROGRAM.format(here=here, anonymous=anonymous, directory=str(tmp_path), size=SIZE)
    program.write_text(textwrap.dedent(code))
    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True) as main:
        workers = [psutil.Process(int(main.stdout.readline())) for _ in range(2)]
        family = [*psutil.Process(main.pid).children(recursive=True), psutil.Process(main.pid)]
        for process in family:
            process.send_signal(signal.SIGSTOP)  # so that none can do anything about the end of another
        for process in family:
            process.kill()
        psutil.wait_procs(workers, timeout=60)


@pytest.mark.slow
def test_nothing_is_left_when_everyone_is_killed(tmp_path):
    before = shared_bytes()
    kill_all_of(tmp_path, anonymous=True)
    deadline = time.monotonic() + 30
    while shared_bytes() > before + SIZE // 2 and time.monotonic() < deadline:
        time.sleep(0.01)  # the kernel takes its time
    assert shared_bytes() < before + SIZE // 2
    assert not list(tmp_path.glob("holdfast-*"))


@pytest.mark.slow
def test_of_named_ones_a_file_is_left_until_the_next_process_shares_something(tmp_path, names, monkeypatch):
    kill_all_of(tmp_path, anonymous=False)
    assert len(names()) == 2  # the bytes, and the log of those who have them
    x = share(numpy.zeros(3))
    assert len(names()) == 3  # they may be new, and still being made
    monkeypatch.setattr(files, "YOUNG", 0)
    y = share(numpy.zeros(3))
    assert len(names()) == 2
    del x, y
    gc.collect()
    assert names() == []


@pytest.mark.slow
def test_a_named_one_that_somebody_holds_is_not_taken_for_abandoned(names, monkeypatch):
    monkeypatch.setattr(files, "YOUNG", 0)
    x = share(numpy.arange(3))
    files.remove_abandoned()
    assert receivers.in_new_interpreter(x, "print(x.sum())") == "3"


@pytest.mark.slow
def test_the_last_one_to_let_go_of_a_named_one_removes_it(names):
    """Also when its maker was the first."""
    context = multiprocessing.get_context("spawn")
    queue, answers = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=receivers.keep_and_read, args=(share(numpy.arange(5)), queue, answers))
    process.start()
    assert answers.get() == "here"
    gc.collect()
    assert any(name.endswith("-shared") for name in names())
    queue.put("read")
    assert answers.get() == 10
    process.join()
    process.close()
    queue.close()
    answers.close()
    assert names() == []


@pytest.mark.slow
def test_a_program_that_ends_removes_its_named_ones(names):
    code = f"""
import pickle, tempfile, torch
from holdfast.sharing import files, share
files.ANONYMOUS, tempfile.tempdir = False, {tempfile.gettempdir()!r}
kept = share(torch.zeros(3))
kept.lock.acquire()
print(len(pickle.dumps(kept)) > 0)
"""
    assert receivers.in_new_interpreter(None, code) == "True"
    assert names() == []


def test_a_pickle_of_what_is_gone_is_an_error_that_says_so(kind, monkeypatch):
    monkeypatch.setattr(flight, "PATIENCE", 0)
    pickled = pickle.dumps(share(torch.zeros(3)))
    gc.collect()
    with pytest.raises(SharedGone, match="HF701"):
        pickle.loads(pickled)


@pytest.mark.slow
def test_a_dead_sender_is_named():
    said = receivers.in_new_interpreter(
        None,
        "import os, torch; from holdfast.sharing import share; y = share(torch.zeros(3))\n"
        "print(os.getpid(), pickle.dumps(y))",
    )
    pid, _, pickled = said.partition(" ")
    with pytest.raises(SharedGone, match=f"process {pid}, which sent it, has ended"):
        pickle.loads(eval(pickled))


def test_a_number_that_was_given_to_another_file_is_not_taken_for_it(monkeypatch):
    """The descriptor's number is soon used again."""
    monkeypatch.setattr(flight, "PATIENCE", 0)
    x = share(torch.zeros(3))
    pickled, taken = pickle.dumps(x), x.untyped_storage()._holdfast.fd
    del x
    gc.collect()
    others = [os.memfd_create("other") for _ in range(20)]
    assert taken in others
    with pytest.raises(SharedGone, match="something else"):
        pickle.loads(pickled)
    for other in others:
        os.close(other)


def test_a_pickle_that_nobody_loads_holds_it_for_a_while_only(kind, monkeypatch):
    before = descriptors()
    pickle.dumps(share(torch.zeros(3)))
    gc.collect()
    assert descriptors() > before
    monkeypatch.setattr(flight, "monotonic", lambda: time.monotonic() + flight.PATIENCE)
    gc.collect()
    gc.collect()
    assert descriptors() == before


@pytest.mark.once
def test_what_has_arrived_is_held_no_longer(kind):
    before = descriptors()
    x = share(torch.zeros(3))
    assert receivers.in_new_interpreter(x, "print(len(x))") == "3"
    del x
    gc.collect()
    assert descriptors() == before


def test_memory_that_the_system_does_not_have_is_a_memory_error():
    """A file of that size is refused by the limit on files, as a full disk would refuse it."""
    code = """
import glob, os, resource, signal, numpy, tempfile
from holdfast.sharing import files, share
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
files.ANONYMOUS = False
try:
    share(numpy.zeros(1 << 21, "u1"))
except MemoryError as error:
    print(error, len(glob.glob(f"{tempfile.gettempdir()}/holdfast-{os.getpid()}-*")))
"""
    assert receivers.in_new_interpreter(None, code) == "the system has no 2097152 bytes left (File too large) 0"
