"""Where loaders are used: beside each other, inside each other, in threads, daemons and odd programs."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from small_datasets import Squares, Stream

from holdfast import DataLoader, LoaderTimeout
from holdfast._system.zygote import zygote

EXPECTED = [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]


def lists(loader: Any) -> list[Any]:
    return [batch.tolist() for batch in loader]


# -- order and time ------------------------------------------------------------------------------


class Gated(Squares):
    """Sample 0 waits until a file is there; its place tells when the others have been given."""

    def __init__(self, gate: Path, length: int = 40) -> None:
        super().__init__(length)
        self.gate = gate

    def __getitem__(self, index: int) -> int:
        while index == 0 and not self.gate.exists():
            time.sleep(0.005)
        return index


def test_without_order_nobody_waits_for_the_slow_one_and_each_comes_once(tmp_path):
    batches = iter(DataLoader(Gated(tmp_path / "open"), num_workers=2, in_order=False))
    early = [next(batches).item() for _ in range(20)]
    assert 0 not in early
    (tmp_path / "open").touch()
    assert sorted(early + [batch.item() for batch in batches]) == list(range(40))


def test_with_order_the_others_run_ahead_of_the_slow_one(tmp_path):
    class Counted(Gated):
        def __getitem__(self, index: int) -> int:
            (self.gate.parent / f"seen {index}").touch()
            return super().__getitem__(index)

    batches = iter(DataLoader(Counted(tmp_path / "open"), num_workers=2))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(next, batches)
        while not (tmp_path / "seen 20").exists():
            assert not first.done()
            time.sleep(0.005)
        (tmp_path / "open").touch()
        assert first.result().item() == 0
    assert [batch.item() for batch in batches] == list(range(1, 40))


def test_streams_without_order_give_each_item_once():
    batches = DataLoader(Stream(50), batch_size=3, num_workers=3, in_order=False)
    assert sorted(item for batch in batches for item in batch.tolist()) == list(range(50))


def test_a_timeout_says_who_is_waited_for_and_the_batch_still_comes(tmp_path):
    batches = iter(DataLoader(Gated(tmp_path / "open", 4), num_workers=1, timeout=0.3))
    with pytest.raises(LoaderTimeout, match=r"DataLoader timed out after 0\.3 seconds") as caught:
        next(batches)
    assert any("batch 0 from worker 0" in words for words in caught.value.waiting_on)
    (tmp_path / "open").touch()
    batches._timeout = 30
    assert [batch.item() for batch in batches] == [0, 1, 2, 3]


# -- several loaders -----------------------------------------------------------------------------


def test_two_loaders_at_once_do_not_mix():
    first, second = (DataLoader(Squares(n), batch_size=4, num_workers=2) for n in (30, 31))
    for index, (a, b) in enumerate(zip(first, second)):
        assert a[0] == b[0] == (4 * index) ** 2
    assert index == 7


def test_two_iterations_of_one_loader_do_not_mix():
    loader = DataLoader(Squares(), batch_size=4, num_workers=1)
    pairs = [(a.tolist(), b.tolist()) for a in loader for b in loader]
    assert pairs == [(a, b) for a in EXPECTED for b in EXPECTED]


@pytest.mark.filterwarnings("ignore::holdfast.IteratorPerStep")
def test_many_short_iterations_leave_nothing():
    loader = DataLoader(Squares(), num_workers=2)
    for _ in range(10):
        assert next(iter(loader)).item() == 0


class Inner(Squares):
    """Every sample is the sum of what another loader with workers gives."""

    def __getitem__(self, index: int) -> int:
        inner = DataLoader(Squares(index), batch_size=2, num_workers=1, allow_empty=True)
        return sum(batch.sum().item() for batch in inner)


def test_a_loader_works_inside_a_worker_of_another():
    assert [batch.item() for batch in DataLoader(Inner(4), num_workers=1)] == [0, 0, 1, 5]


# -- other threads and processes -----------------------------------------------------------------


def in_thread(work: Any) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


@pytest.mark.parametrize("start", ["zygote", "spawn", "fork"])
@pytest.mark.filterwarnings("ignore:the workers are forks of a process with other threads")
def test_a_loader_works_in_a_thread(start):
    assert in_thread(lambda: lists(DataLoader(Squares(), batch_size=4, num_workers=1, start=start))) == EXPECTED


def test_an_iterator_may_go_from_thread_to_thread():
    batches = in_thread(lambda: iter(DataLoader(Squares(), batch_size=4, num_workers=2)))
    assert next(batches).tolist() == EXPECTED[0]
    assert in_thread(lambda: next(batches)).tolist() == EXPECTED[1]
    assert lists(batches) == EXPECTED[2:]


def test_loaders_in_several_threads_share_one_zygote():
    list(DataLoader(Squares(), num_workers=1))  # with the modules of this test imported
    before = zygote()
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(lambda: lists(DataLoader(Squares(), batch_size=4, num_workers=1))) for _ in range(12)]
    assert [job.result() for job in jobs] == [EXPECTED] * 12
    assert zygote() is before


def report(connection: Any) -> None:
    try:
        connection.send(lists(DataLoader(Squares(), batch_size=4, num_workers=1)))
    except BaseException as error:
        connection.send(repr(error))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_loader_works_in_a_daemonic_process(method):
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=report, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    assert ours.recv() == EXPECTED
    process.join(10)
    assert process.exitcode == 0
    ours.close()
    process.close()


def test_an_iterator_in_a_fork_does_not_touch_the_workers_of_its_parent():
    batches = iter(DataLoader(Squares(), batch_size=4, num_workers=2))
    assert next(batches).tolist() == EXPECTED[0]
    pid = os.fork()
    if not pid:
        del batches  # closes it, in the copy
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert lists(batches) == EXPECTED[1:]


@contextmanager
def handler(number: int, action: Any) -> Iterator[None]:
    before = signal.signal(number, action)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("start", ["zygote", "fork", "spawn"])
def test_a_loader_works_when_sigchld_is_ignored(start):
    with handler(signal.SIGCHLD, signal.SIG_IGN):
        assert lists(DataLoader(Squares(), batch_size=4, num_workers=1, start=start)) == EXPECTED


def test_a_loader_changes_no_handler_and_starts_no_thread():
    handled = {number: signal.getsignal(number) for number in signal.valid_signals()}
    threads = threading.active_count()
    batches = iter(DataLoader(Squares(), num_workers=2))
    next(batches)
    assert {number: signal.getsignal(number) for number in signal.valid_signals()} == handled
    assert threading.active_count() == threads
    assert multiprocessing.get_start_method(allow_none=True) in (None, "fork", "forkserver")


# -- programs ------------------------------------------------------------------------------------


def run(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, timeout=60)


@pytest.mark.slow
def test_a_script_without_a_main_guard_works_and_ends_in_silence():
    code = """
import os, torch
from holdfast import DataLoader
print("ran", os.getpid())
class Own(torch.utils.data.Dataset):
    def __len__(self): return 6
    def __getitem__(self, index): return index
loader = DataLoader(Own(), batch_size=2, num_workers=2, collate_fn=lambda samples: samples)
print(list(loader))
kept = iter(DataLoader(Own(), num_workers=2, persistent_workers=True))
next(kept)
"""
    done = run(code, "-X", "dev", "-W", "error")
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.count("ran") == 1
    assert "[[0, 1], [2, 3], [4, 5]]" in done.stdout


IN_A_RANK = """
import multiprocessing
import torch
from torch.utils.data import Dataset
from holdfast import DataLoader

class Sample:
    def __init__(self, index): self.index = index

class Numbers(Dataset):
    def __len__(self): return 8
    def __getitem__(self, index): return Sample(index)

def as_list(batch): return batch

def rank():
    loader = DataLoader(Numbers(), batch_size=4, num_workers=1, collate_fn=as_list)
    samples = [sample for batch in loader for sample in batch]
    print(all(isinstance(sample, Sample) for sample in samples), [sample.index for sample in samples])

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=rank)
    process.start()
    process.join()
"""


@pytest.mark.slow
def test_a_loader_of_the_scripts_own_classes_works_in_a_process_that_was_spawned(tmp_path):
    script = tmp_path / "ranks.py"
    script.write_text(IN_A_RANK)
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=100)
    assert ran.stdout == "True [0, 1, 2, 3, 4, 5, 6, 7]\n", ran.stderr


def test_the_environment_and_directory_at_the_start_of_the_crew_are_the_workers(tmp_path, monkeypatch):
    class Around(Squares):
        def __getitem__(self, index: int) -> tuple[str, str | None]:
            return os.getcwd(), os.environ.get("HOLDFAST_TEST_LATE")

    loader = DataLoader(Around(), batch_size=None, num_workers=1, collate_fn=tuple)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_TEST_LATE", "set after the constructor")
    assert next(iter(loader)) == (str(tmp_path), "set after the constructor")
    monkeypatch.delenv("HOLDFAST_TEST_LATE")
    assert next(iter(loader)) == (str(tmp_path), None)


def test_a_module_that_only_the_script_can_find_is_found_by_the_workers(tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def double(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import only_here

    class Doubled(Squares):
        def __getitem__(self, index: int) -> int:
            return only_here.double(index)

    assert [batch.item() for batch in DataLoader(Doubled(), num_workers=1)] == [2 * index for index in range(10)]


def test_a_loader_that_is_a_member_of_a_pickled_object_is_harmless():
    loader = DataLoader(Squares(), batch_size=4, num_workers=1, persistent_workers=True)
    list(loader)
    loader._iterator = None
    assert lists(pickle.loads(pickle.dumps({"loader": loader}))["loader"]) == EXPECTED
