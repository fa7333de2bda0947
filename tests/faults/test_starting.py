"""Starting workers: F01 to F14 and F36. `today_*` shows the failure with stock torch, where that is quick."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import threading
import time

import numpy
import psutil
import pytest
import torch
from trainers import run, script

import holdfast
from holdfast import DataLoader
from holdfast._system import zygote as zygotes

STARTS = ("zygote", "fork", "spawn")
BY_VALUE = ("zygote", "spawn")
NUMBERS = list(range(40))


def flat(loader) -> list[int]:
    return [int(number) for batch in loader for number in batch]


# -- F01 ---------------------------------------------------------------------------------------


@pytest.fixture
def a_lock_is_held():
    """By another thread, all the time; and OpenMP has run in this process."""
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with LOCK:
            held.set()
            release.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    torch.ones(1 << 20).add_(1).sum()
    yield
    torch.set_num_threads(threads)
    release.set()
    holder.join()


LOCK = threading.Lock()


class NeedsTheLock(torch.utils.data.Dataset):
    """Takes a lock of its module and then runs OpenMP, both of which hang in a fork of a trainer that used them."""

    def __len__(self):
        return 40

    def __getitem__(self, index):
        with LOCK:
            torch.set_num_threads(2)
            return torch.full((1 << 17,), float(index)).add(1).sum()


def test_a_lock_held_in_the_trainer_and_openmp_do_not_stop_the_workers(a_lock_is_held):
    expected = [(index + 1) * (1 << 17) for index in range(40)]
    assert flat(DataLoader(NeedsTheLock(), batch_size=4, num_workers=2, timeout=30)) == expected


@pytest.mark.slow  # what stock torch does, which the gauntlet shows too
def test_today_a_lock_held_in_the_trainer_stops_the_workers(tmp_path):
    path = script(
        tmp_path,
        """
        import threading, torch
        lock = threading.Lock()
        lock.acquire()  # as another thread would hold it
        class NeedsTheLock:
            def __len__(self):
                return 4
            def __getitem__(self, index):
                with lock:
                    return index
        print("starting", flush=True)
        next(iter(torch.utils.data.DataLoader(NeedsTheLock(), num_workers=1, multiprocessing_context="fork")))
        """,
    )
    ran = run(path, limit=6)
    assert ran.hung
    assert ran.lines == ["starting"]


# -- F02, F03, F04 -----------------------------------------------------------------------------

MAIN = """
    import os, sys
    with open("ran", "a") as file:
        file.write("x")
    from {package} import DataLoader
    import torch

    class Sample:
        def __init__(self, number):
            self.number = number

    class Squares(torch.utils.data.Dataset):
        def __init__(self):
            self.transform = lambda x: x * x
        def __len__(self):
            return 20
        def __getitem__(self, index):
            return Sample(self.transform(index))

    sign = -1
    def collate(samples):
        assert all(isinstance(sample, Sample) for sample in samples)
        return [Sample(sign * sample.number) for sample in samples]

    def init(worker):
        assert worker in (0, 1)

    loader = DataLoader(Squares(), batch_size=3, num_workers=2, collate_fn=lambda b: collate(b),
                        worker_init_fn=lambda worker: init(worker), {how})
    got = [sample for batch in loader for sample in batch]
    assert all(isinstance(sample, Sample) for sample in got), type(got[0])
    print(*[sample.number for sample in got])
"""
SQUARES = " ".join(str(-index * index) for index in range(20))


@pytest.mark.parametrize("start", ["auto", "spawn"])
def test_lambdas_and_classes_of_a_script_without_a_main_guard_work_and_it_runs_once(tmp_path, monkeypatch, start):
    monkeypatch.chdir(tmp_path)
    path = script(tmp_path, MAIN.format(package="holdfast", how=f"start={start!r}"))
    assert run(path).ok().lines == [SQUARES]
    assert (tmp_path / "ran").read_text() == "x"


@pytest.mark.parametrize(("way", "start"), [("stdin", "auto"), ("-c", "spawn"), ("exec without __file__", "auto")])
def test_code_that_has_no_file_works_as_in_a_notebook(tmp_path, monkeypatch, way, start):
    monkeypatch.chdir(tmp_path)
    path = script(tmp_path, MAIN.format(package="holdfast", how=f"start={start!r}"))
    if way == "stdin":
        ran = run("-", given=path.read_text())
    elif way == "-c":
        ran = run("-c", path.read_text())
    else:
        ran = run("-c", f"cell = open({str(path)!r}).read(); exec(compile(cell, '<cell 1>', 'exec'), globals())")
    assert ran.ok().lines == [SQUARES]
    assert (tmp_path / "ran").read_text() == "x"


@pytest.mark.slow  # what stock torch does, which the gauntlet shows too
def test_today_a_lambda_cannot_be_pickled_under_spawn(tmp_path):
    path = script(
        tmp_path,
        """
        import torch
        if __name__ == "__main__":
            loader = torch.utils.data.DataLoader(range(4), num_workers=1, collate_fn=lambda batch: batch,
                                                 multiprocessing_context="spawn")
            list(loader)
        """,
    )
    ran = run(path, limit=20)
    assert ran.status != 0
    assert "lambda" in ran.err


@pytest.mark.slow  # what stock torch does, which the gauntlet shows too
def test_today_a_script_without_a_main_guard_runs_again_in_its_workers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = script(
        tmp_path,
        """
        import sys
        with open("ran", "a") as file:
            file.write("x")
        import torch
        loader = torch.utils.data.DataLoader(range(4), num_workers=1, multiprocessing_context="spawn")
        print(len(list(loader)))
        """,
    )
    ran = run(path, limit=20)
    assert ran.status != 0
    assert "bootstrapping phase" in ran.err
    assert len((tmp_path / "ran").read_text()) > 1


# -- F06 ---------------------------------------------------------------------------------------


def test_a_second_crew_starts_at_once_from_the_warm_zygote():
    flat(DataLoader(NUMBERS, num_workers=2))
    began = time.monotonic()
    iterator = iter(DataLoader(NUMBERS, num_workers=2))
    next(iterator)
    seconds = time.monotonic() - began
    print(f"first batch of a second crew after {seconds:.3f} s")
    assert seconds < 2
    del iterator


# -- F07 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", STARTS)
def test_nothing_global_in_the_trainer_is_changed(start):
    def state():
        return {
            "start method": multiprocessing.get_start_method(allow_none=True),
            "sharing strategy": torch.multiprocessing.get_sharing_strategy(),
            "signal handlers": {number: signal.getsignal(number) for number in signal.valid_signals()},
            "signal mask": signal.pthread_sigmask(signal.SIG_BLOCK, []),
            "wakeup": _wakeup(),
            "threads": sorted(thread.name for thread in threading.enumerate()),
            "settings": (torch.get_num_threads(), os.getcwd(), dict(os.environ)),
        }

    torch.ones(10)
    before, tasks = state(), len(os.listdir("/proc/self/task"))
    iterator = iter(DataLoader(NUMBERS, batch_size=4, num_workers=2, start=start))
    got = [next(iterator)]
    during = state()
    got += list(iterator)
    assert during == before
    assert state() == before
    assert len(os.listdir("/proc/self/task")) <= tasks  # no thread that Python does not know of
    assert flat(got) == NUMBERS


def _wakeup() -> int:
    fd = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(fd)
    return fd


# -- F10 ---------------------------------------------------------------------------------------


def _load_in_a_daemon(results, start) -> None:
    assert multiprocessing.current_process().daemon
    loader = DataLoader(NUMBERS, batch_size=4, num_workers=2, start=start)
    iterator = iter(loader)
    got = [int(number) for batch in iterator for number in batch]
    iterator = iter(loader)  # left open: its workers must end with the daemon
    next(iterator)
    results.put((got, [worker.pid for worker in iterator._workers]))
    results.close()
    results.join_thread()
    os._exit(0)


@pytest.mark.parametrize("start", ["zygote", "fork"])
def test_a_daemonic_process_may_have_workers_and_they_end_with_it(start):
    from trainers import Ends

    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=_load_in_a_daemon, args=(results, start), daemon=True)
    process.start()
    got, pids = results.get(timeout=60)
    ends = Ends(pids)
    process.join(10)
    assert process.exitcode == 0
    assert got == NUMBERS
    assert ends.wait(2) == []
    results.close()
    results.join_thread()
    process.close()


# -- F11, F36 ----------------------------------------------------------------------------------


def own_memory() -> int:
    """Bytes of this process that are in no file and no shared segment: a copy of its own would be there."""
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("Anonymous:"))


class Array:
    """Each sample says how much memory its worker has for itself after reading all of the array."""

    def __init__(self, size: int) -> None:
        self.values = numpy.ones(size >> 3)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.values.sum(), own_memory()


@pytest.mark.parametrize("start", BY_VALUE)
def test_a_large_dataset_is_shipped_once_for_all_workers(start):
    def rows(size: int) -> list[tuple[float, int]]:
        return [(float(total), int(own)) for total, own in DataLoader(Array(size), num_workers=2, start=start)]

    small, large = rows(8), rows(100 << 20)
    assert [total for total, _ in large] == [100 << 17] * 4
    more = max(own for _, own in large) - min(own for _, own in small)
    print(f"{start}: a worker's own memory grows by {more >> 20} MiB with a dataset of 100 MiB")
    assert more < 40 << 20


def test_a_worker_is_no_fork_of_a_big_trainer():
    class Resident:
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return psutil.Process().memory_info().rss

    big = bytearray(os.urandom(1 << 20)) * 600  # MiB, touched
    forked = flat(DataLoader(Resident(), num_workers=1, start="fork"))
    clean = flat(DataLoader(Resident(), num_workers=1))
    print(f"resident in a worker: {clean[0] >> 20} MiB, as a fork {forked[0] >> 20} MiB")
    assert min(forked) > len(big)
    assert max(clean) < len(big)


# -- F12 ---------------------------------------------------------------------------------------


class WithGenerator:
    def __init__(self):
        self.generator = torch.Generator()
        self.generator.manual_seed(5)
        self.column = torch.arange(40).reshape(8, 5)[:, 2]  # a view of a tensor that nobody else keeps

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.column[index], self.generator.initial_seed()


@pytest.mark.parametrize("start", STARTS)
def test_a_generator_and_a_temporary_tensor_can_be_part_of_the_dataset(start):
    rows = [(int(value), int(seed)) for value, seed in DataLoader(WithGenerator(), num_workers=2, start=start)]
    assert rows == [(2 + 5 * index, 5) for index in range(8)]


# -- F13 ---------------------------------------------------------------------------------------


class Surroundings:
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return [(os.environ.get("SET_LATE"), os.environ.get("TAKEN_AWAY"), os.getcwd())]


@pytest.mark.parametrize("start", STARTS)
def test_environment_and_directory_set_late_reach_the_next_crew(start, tmp_path, monkeypatch):
    monkeypatch.setenv("TAKEN_AWAY", "here")
    loader = DataLoader(Surroundings(), num_workers=2, start=start, collate_fn=lambda samples: samples[0][0])
    assert list(loader) == [(None, "here", os.getcwd())] * 2
    monkeypatch.setenv("SET_LATE", "yes")
    monkeypatch.delenv("TAKEN_AWAY")
    monkeypatch.chdir(tmp_path)
    assert list(loader) == [("yes", None, str(tmp_path))] * 2


@pytest.mark.slow
def test_the_directory_in_which_the_first_crew_started_may_be_removed(tmp_path, monkeypatch):
    path = script(
        tmp_path,
        """
        import os
        from holdfast import DataLoader
        os.mkdir("first")
        os.chdir("first")
        assert len(list(DataLoader(range(8), num_workers=2))) == 8
        os.chdir("..")
        os.rmdir("first")
        print([int(number) for number in DataLoader(range(8), num_workers=2)])
        """,
    )
    monkeypatch.chdir(tmp_path)
    assert run(path).ok().lines == [str(list(range(8)))]


# -- F14 ---------------------------------------------------------------------------------------


class Unready(Exception):
    def __init__(self, where, why):
        super().__init__(where, why)
        self.where, self.why = where, why


def _refuse(worker):
    if worker == 1:
        raise Unready("disk", "not mounted")


class CannotBeUnpickled:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return index

    def __getstate__(self):
        return {"a": 1}

    def __setstate__(self, state):
        raise Unready("disk", "not mounted")


@pytest.mark.parametrize("start", STARTS)
def test_an_error_of_worker_init_fn_is_raised_as_itself_with_the_number_of_the_worker(start):
    loader = DataLoader(NUMBERS, num_workers=2, worker_init_fn=_refuse, start=start)
    with pytest.raises(Unready) as caught:
        list(loader)
    assert (caught.value.where, caught.value.why) == ("disk", "not mounted")
    assert any("in worker 1 (pid " in note and "_refuse" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("start", BY_VALUE)
def test_an_error_of_unpickling_the_dataset_is_raised_as_itself_with_the_number_of_the_worker(start):
    loader = DataLoader(CannotBeUnpickled(), num_workers=2, start=start)
    with pytest.raises(Unready) as caught:
        list(loader)
    assert caught.value.why == "not mounted"
    assert any("in worker" in note and "__setstate__" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("start", ["zygote", "fork"])
def test_an_error_of_worker_init_fn_is_the_same_when_the_worker_has_gone_before_it_is_heard(start):
    """The trainer looks only after both workers have ended: their last words and their ends are there at once."""
    loader = DataLoader(NUMBERS, num_workers=2, start=start, worker_init_fn=_refuse_all)
    iterator = iter(loader)
    from trainers import Ends

    assert Ends([worker.pid for worker in iterator._workers]).wait(30) == []
    with pytest.raises(Unready, match="everywhere"):
        next(iterator)


def _refuse_all(worker):
    raise Unready("everywhere", "always")


def test_the_zygote_is_started_only_for_loaders_with_workers():
    assert flat(DataLoader(NUMBERS)) == NUMBERS
    assert holdfast.DataLoader(NUMBERS).restarts == 0


# -- modules that start threads when they are imported ------------------------------------------

STARTS_A_THREAD = """
import ctypes, os, threading
def live():
    ctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0)  # PR_SET_NAME
    named.set()
    threading.Event().wait()
named = threading.Event()
if os.getpid() != {trainer}:
    threading.Thread(target=live, daemon=True).start()
    named.wait()
class Part: pass
"""


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Imports modules of such texts; what the zygote learns of them is forgotten afterwards."""
    names: list[str] = []
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(zygotes, "_unsafe", set())

    def write(name: str, text: str) -> object:
        (tmp_path / f"{name}.py").write_text(text)
        names.append(name)
        return importlib.import_module(name)

    yield write
    for name in names:
        del sys.modules[name]


class OfParts:
    def __init__(self, *modules):
        self.parts = [module.Part() for module in modules]

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return len(self.parts)


def test_who_starts_a_thread_when_imported_is_left_to_the_workers_and_nobody_else_is(modules):
    quiet = modules("quiet_module", "class Part: pass")
    loud = modules("loud_module", STARTS_A_THREAD.format(name=b"loud", trainer=os.getpid()))
    assert flat(DataLoader(OfParts(loud, quiet), num_workers=1)) == [2]
    assert zygotes._unsafe == {"loud_module"}
    assert "quiet_module" in zygotes.zygote().preloaded


def test_threads_that_mind_forks_themselves_do_not_keep_a_module_from_the_zygote(modules):
    """One named as jemalloc's, which comes with pyarrow: that itself is not installed here."""
    arrow = modules("like_arrow_module", STARTS_A_THREAD.format(name=b"jemalloc_bg_thd", trainer=os.getpid()))
    assert flat(DataLoader(OfParts(arrow), num_workers=1)) == [1]
    assert zygotes._unsafe == set()
    assert "like_arrow_module" in zygotes.zygote().preloaded


# -- warm --------------------------------------------------------------------------------------

EARLY = """
import sys
import holdfast
holdfast.warm("colorsys", wait=False)
assert "torch" not in sys.modules, "torch was imported, or waited for"
from holdfast._system import zygote as zygotes
early = zygotes._current
assert early is not None and [owed[-1] for owed in early._owed] == ["colorsys"]
import colorsys

class Dataset:
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return "colorsys" in sys.modules

assert [bool(batch) for batch in holdfast.DataLoader(Dataset(), num_workers=2)] == [True] * 4
assert zygotes._current is early, "it was not used"
print("used")
"""


def test_warming_ahead_waits_for_nothing_and_is_what_the_loader_then_uses(tmp_path):
    assert run(script(tmp_path, EARLY)).ok().lines == ["used"]


def test_a_module_that_was_warmed_before_the_trainer_imported_it_does_not_make_the_zygote_stale(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "warmed_before.py"
    module.write_text("")
    holdfast.warm("warmed_before")
    warmed = zygotes.zygote()
    importlib.import_module("warmed_before")
    try:
        assert zygotes.zygote(["warmed_before"]) is warmed
        os.utime(module, (1, 1))
        assert zygotes.zygote() is not warmed
    finally:
        del sys.modules["warmed_before"]


@pytest.mark.parametrize("wait", [True, False])
def test_who_starts_a_thread_when_warmed_is_left_to_the_workers(wait, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(zygotes, "_unsafe", set())
    (tmp_path / "loud_when_warmed.py").write_text(STARTS_A_THREAD.format(name=b"loud", trainer=os.getpid()))
    holdfast.warm("loud_when_warmed", wait=wait)
    assert "loud_when_warmed" not in zygotes.zygote().preloaded
    assert zygotes._unsafe == {"loud_when_warmed"}
