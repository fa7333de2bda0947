"""The ends of things: F51, F52, F53. Nobody is left, nothing is printed, nobody waits."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset, Sampler
from trainers import Ends, Trainer, family, run, script, started, wait_until

from holdfast import DataLoader
from holdfast.testing import Faulty, HangsAt, SpinsAt

STARTS = ("zygote", "fork", "spawn")
PATIENCE = 2.0  # seconds, where half a second is promised
NUMBERS = list(range(100))
TELLING = ("-W", "default::ResourceWarning")  # says what was left open
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # start="fork" warns of any other


def busy(fault, **options):
    """An iterator whose workers are both held up, after its first two batches."""
    iterator = iter(DataLoader(Faulty(NUMBERS, fault(2), fault(3)), num_workers=2, **options))
    assert [int(next(iterator)), int(next(iterator))] == [0, 1]
    return iterator


# -- F52 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "start"), [(HangsAt, "zygote"), (SpinsAt, "zygote"), (SpinsAt, "fork"), (HangsAt, "spawn")]
)
def test_dropping_the_iterator_ends_busy_workers(fault, start, capfd):
    iterator = busy(fault, start=start)
    ends = Ends(worker.pid for worker in iterator._workers)
    began = time.monotonic()
    del iterator
    seconds = time.monotonic() - began
    assert ends.wait(0) == []
    assert seconds < PATIENCE
    assert capfd.readouterr() == ("", "")
    print(f"closed in {seconds:.2f} s")


def test_break_ends_busy_workers(capfd):
    began = 0.0
    for number in DataLoader(Faulty(NUMBERS, HangsAt(6), HangsAt(7)), num_workers=2):
        if int(number) == 5:
            children = Ends(_workers())
            began = time.monotonic()
            break
    seconds = time.monotonic() - began
    assert children.wait(0) == []
    assert seconds < PATIENCE
    assert capfd.readouterr() == ("", "")


def test_an_exception_in_the_loop_ends_busy_workers(capfd):
    def train() -> None:
        for number in DataLoader(Faulty(NUMBERS, HangsAt(6), HangsAt(7)), num_workers=2):
            if int(number) == 5:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    gc.collect()  # pytest keeps the traceback for as long as it pleases
    assert _workers() == []
    assert capfd.readouterr() == ("", "")


def _workers() -> list[int]:
    """The forks of our zygote."""
    from holdfast._system.zygote import zygote

    return family(zygote()._popen.pid)


def test_setting_the_iterator_to_none_ends_persistent_workers_that_are_busy():
    loader = DataLoader(Faulty(NUMBERS, HangsAt(2), HangsAt(3)), num_workers=2, persistent_workers=True)
    iterator = iter(loader)
    assert [int(next(iterator)), int(next(iterator))] == [0, 1]
    ends = Ends(worker.pid for worker in iterator._workers)
    began = time.monotonic()
    loader._iterator = None
    assert time.monotonic() - began < PATIENCE
    assert ends.wait(0) == []
    with pytest.raises(StopIteration):
        next(iterator)


def test_the_end_of_an_epoch_is_no_pause():
    loader = DataLoader(NUMBERS, batch_size=10, num_workers=2)
    list(loader)
    began = time.monotonic()
    for _ in range(5):
        assert len(list(loader)) == 10
    seconds = (time.monotonic() - began) / 5
    print(f"an epoch of ten tiny batches takes {seconds:.3f} s, with its workers started and ended")
    assert seconds < PATIENCE


UNFINISHED = """
    import os, sys, time
    from holdfast import DataLoader
    from holdfast.testing import Faulty, HangsAt
    loader = DataLoader(Faulty(range(100), HangsAt(6), HangsAt(7)), num_workers=2, start={start!r},
                        persistent_workers={persistent})
    iterator = iter(loader)
    for _ in range(6):
        next(iterator)
    print(*[worker.pid for worker in iterator._workers], flush=True)
    keep = [iterator, loader]
    keep.append(keep)  # a cycle, which nobody collects
    print(time.time(), flush=True)
"""


@pytest.mark.parametrize("start", ["zygote", pytest.param("fork", marks=pytest.mark.slow)])
def test_leaving_with_an_unfinished_iterator_is_silent_and_quick(tmp_path, start):
    path = script(tmp_path, UNFINISHED.format(start=start, persistent=start == "zygote"))
    with started(*TELLING, path, **ONE_THREAD) as trainer:
        ends = Ends(map(int, trainer.line().split()))
        began = float(trainer.line())
        ran = trainer.finish()
        seconds = time.time() - began
    assert (ran.status, ran.err) == (0, "")
    print(f"{start}: gone after {seconds:.2f} s")
    assert seconds < PATIENCE + 1
    assert ends.wait(1) == []


# -- F51 ---------------------------------------------------------------------------------------

BUSY = """
    import itertools, os, sys, threading, time
    import torch
    from holdfast import DataLoader

    class Busy:
        def __len__(self):
            return 100
        def __getitem__(self, index):
            if index > 1:
                os.write(1, str(os.getpid()).encode() + b"\\n")  # whole, beside the other worker's
                {how}
            return index

    def train():
        iterator = iter(DataLoader(Busy(), num_workers=2, start={start!r}, persistent_workers=True))
        keep.append(iterator)
        next(iterator), next(iterator)

    keep = []
    {call}
    time.sleep(600)
"""
C_LOOP = "sum(itertools.repeat(0))"
SLEEP = "time.sleep(600)"


def orphans(trainer: Trainer, limit: float) -> tuple[list[int], float]:
    """Kill the trainer when both its workers are busy; who lives on after ``limit`` seconds."""
    workers = {int(trainer.line()), int(trainer.line())}
    assert len(workers) == 2
    everyone = {*family(trainer.pid), *workers}
    ends = Ends(everyone)
    began = time.monotonic()
    os.kill(trainer.pid, signal.SIGKILL)
    left = ends.wait(limit)
    seconds = time.monotonic() - began
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return left, seconds


@pytest.mark.parametrize(
    ("how", "start"),
    [
        (C_LOOP, "zygote"),
        (C_LOOP, "fork"),
        pytest.param(C_LOOP, "spawn", marks=pytest.mark.slow),
        pytest.param(SLEEP, "zygote", marks=pytest.mark.slow),
    ],
)
def test_workers_end_with_a_killed_trainer_whatever_they_do(tmp_path, how, start):
    path = script(tmp_path, BUSY.format(how=how, start=start, call="train()"))
    with started(path) as trainer:
        left, seconds = orphans(trainer, PATIENCE)
    assert not left
    print(f"{start}: all gone {seconds:.3f} s after the trainer was killed")
    assert seconds < PATIENCE


@pytest.mark.parametrize(
    ("how", "start"),
    [
        (C_LOOP, "zygote"),
        (SLEEP, "fork"),
    ],
)
def test_workers_outlive_the_thread_that_started_them_and_end_with_the_trainer(tmp_path, how, start):
    thread = "thread = threading.Thread(target=train); thread.start(); thread.join()"
    path = script(tmp_path, BUSY.format(how=how, start=start, call=thread))
    with started(path) as trainer:
        left, _ = orphans(trainer, PATIENCE)
    assert not left


@pytest.mark.parametrize("start", STARTS)
def test_an_iterator_goes_on_after_the_thread_that_made_it(start):
    made: list = []
    thread = threading.Thread(target=lambda: made.append(iter(DataLoader(NUMBERS, num_workers=2, start=start))))
    thread.start()
    thread.join()
    iterator = made.pop()
    pids = [worker.pid for worker in iterator._workers]
    assert [int(number) for number in iterator] == NUMBERS
    assert [worker.pid for worker in iterator._workers] == pids
    assert iterator.restarts == 0


@pytest.mark.slow  # what stock torch does, which the gauntlet shows too
def test_today_busy_workers_outlive_a_killed_trainer(tmp_path):
    source = BUSY.replace("from holdfast import", "from torch.utils.data import").replace(
        "start=", "multiprocessing_context="
    )
    path = script(tmp_path, source.format(how=C_LOOP, start="fork", call="train()"))
    with started(path) as trainer:
        left, _ = orphans(trainer, 3)
    assert len(left) == 2


# -- F53 ---------------------------------------------------------------------------------------

TRAINER = """
    import os, sys, time
    from holdfast import DataLoader

    class Slow:
        def __len__(self):
            return 1000
        def __getitem__(self, index):
            time.sleep(0.01)
            return index

    loader = DataLoader(Slow(), batch_size=4, num_workers=2, start={start!r})
    for number, batch in enumerate(loader):
        if number == 3:
            print("training", flush=True)
"""


@pytest.mark.parametrize("start", STARTS)
def test_ctrl_c_gives_one_traceback_and_leaves_nobody(tmp_path, start):
    path = script(tmp_path, TRAINER.format(start=start))
    with started(path, **ONE_THREAD) as trainer:
        assert trainer.line() == "training"
        ends = Ends(family(trainer.pid))
        trainer.interrupt()
        ran = trainer.finish(10)
    assert ran.status == -signal.SIGINT
    assert ran.err.count("Traceback (most recent call last)") == 1
    assert ran.err.startswith("Traceback (most recent call last)")
    assert ran.err.rstrip().endswith("KeyboardInterrupt")
    assert ends.wait(1) == []
    assert ran.seconds < PATIENCE


def test_ctrl_c_while_everything_starts_gives_one_traceback_and_leaves_nobody(tmp_path):
    """The clean process is itself a Python that starts, and hears the same signal."""
    path = script(
        tmp_path,
        """
        import torch
        from holdfast import DataLoader
        print("starting", flush=True)
        for batch in DataLoader(range(8), num_workers=2, start="START"):
            pass
        while True:
            pass
        """.replace("START", "auto"),
    )
    for pause in (0.0, 0.03, 0.08):
        with started(path) as trainer:
            assert trainer.line() == "starting"
            threading.Event().wait(pause)
            ends = Ends(family(trainer.pid))
            trainer.interrupt()
            ran = trainer.finish(10)
        assert ran.err.count("Traceback (most recent call last)") == 1, f"after {pause} s: {ran.err}"
        assert ran.err.rstrip().endswith("KeyboardInterrupt")
        assert ran.status == -signal.SIGINT
        assert ends.wait(2) == []


INTERRUPTED = """
    import os, signal, sys, time
    import torch
    from holdfast import DataLoader

    class Slow:
        def __len__(self):
            return 40
        def __getitem__(self, index):
            while index >= 4 and not os.path.exists({go!r}):
                time.sleep(0.01)
            return index

    loader = DataLoader(Slow(), batch_size=4, num_workers=2, persistent_workers=True, start={start!r})
    iterator = iter(loader)
    first = next(iterator)
    pids = [worker.pid for worker in iterator._workers]
    got = [first]
    try:
        print("training", flush=True)
        while True:
            got.append(next(iterator))
    except KeyboardInterrupt:
        print("caught", flush=True)
    assert [batch.tolist() for batch in got] == [[0, 1, 2, 3]]
    if {resume}:
        got += list(iterator)  # the same epoch goes on
        assert [int(i) for batch in got for i in batch] == list(range(40)), got
    assert [int(i) for batch in loader for i in batch] == list(range(40))
    iterator = loader._iterator
    assert [worker.pid for worker in iterator._workers] == pids, "other workers"
    assert iterator.restarts == 0
    print("same workers", flush=True)
"""


@pytest.mark.parametrize("resume", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_persistent_workers_survive_ctrl_c_that_the_program_catches(tmp_path, resume):
    go = tmp_path / "go"
    path = script(tmp_path, INTERRUPTED.format(start="zygote", resume=resume, go=str(go)))
    with started(path, **ONE_THREAD) as trainer:
        assert trainer.line() == "training"
        wait_until(trainer.waits)  # an interrupt in the middle of our own work costs the workers, and no batch
        trainer.interrupt()
        assert trainer.line() == "caught"
        go.touch()
        assert trainer.line() == "same workers"
        ran = trainer.finish(10)
    assert (ran.status, ran.err) == (0, "")


@pytest.mark.slow
def test_a_loader_works_after_ctrl_c_while_its_workers_were_started(tmp_path):
    """The interrupt comes while the trainer waits for the answer of a zygote that is still importing torch."""
    path = script(
        tmp_path,
        """
        import os, threading, time
        import psutil, torch
        from holdfast import DataLoader
        from holdfast.testing import Faulty, HangsAt
        class Slow:
            def __len__(self):
                return 20
            def __getitem__(self, index):
                return index
        loader = DataLoader(Slow(), batch_size=2, num_workers=2)
        try:
            print("starting", flush=True)
            for batch in loader:
                pass
            print("too late")
        except KeyboardInterrupt:
            print("caught", flush=True)
        for _ in range(2):
            assert [int(i) for batch in loader for i in batch] == list(range(20))
        iterator = iter(DataLoader(Faulty(range(20), HangsAt(2), HangsAt(3)), num_workers=2))
        next(iterator), next(iterator)
        pids = [worker.pid for worker in iterator._workers]
        began = time.monotonic()
        del iterator  # ends the right processes
        assert time.monotonic() - began < 2
        left = [child for child in psutil.Process().children(recursive=True) if child.pid in pids]
        assert not left, left
        print("works")
        """,
    )
    with started(path) as trainer:
        assert trainer.line() == "starting"
        threading.Event().wait(0.3)
        trainer.interrupt()
        assert trainer.line() == "caught"
        assert trainer.line() == "works"
        ran = trainer.finish(10)
    assert (ran.status, ran.err) == (0, "")


# -- the zygote and those who share it ---------------------------------------------------------


@pytest.mark.slow
def test_a_file_edited_during_training_costs_no_running_worker(tmp_path, monkeypatch):
    """The next crew gets the new code from a new zygote; the workers of the old one go on."""
    monkeypatch.syspath_prepend(tmp_path)
    module = script(tmp_path, "def transform(x):\n    return x + 1\n", "edited_while_training.py")
    import edited_while_training

    from holdfast._system.zygote import _retired, zygote

    class Transformed:
        def __init__(self, transform):
            self.transform = transform

        def __len__(self):
            return 40

        def __getitem__(self, index):
            return self.transform(index)

    iterator = iter(DataLoader(Transformed(edited_while_training.transform), num_workers=2))
    got = [int(next(iterator))]
    pids = [worker.pid for worker in iterator._workers]
    old = zygote()
    os.utime(module, (1, 1))
    assert [int(number) for number in DataLoader(NUMBERS, num_workers=2)] == NUMBERS
    assert zygote() is not old
    got += [int(number) for number in iterator]
    assert got == list(range(1, 41))
    assert [worker.pid for worker in iterator._workers] == pids
    assert iterator.restarts == 0
    ends = Ends([old._popen.pid])
    del iterator
    assert ends.wait(5) == []  # nobody needs it any more
    zygote()
    assert old not in _retired


def test_a_fork_of_the_trainer_leaves_the_parents_workers_alone(tmp_path):
    path = script(
        tmp_path,
        """
        import os, sys
        from holdfast import DataLoader
        iterator = iter(DataLoader(range(40), num_workers=2))
        got = [int(next(iterator))]
        pid = os.fork()
        if not pid:
            assert [int(i) for i in DataLoader(range(8), num_workers=2)] == list(range(8))
            del iterator
            sys.exit(0)  # with all exit handlers
        assert os.waitpid(pid, 0)[1] == 0
        got += [int(i) for i in iterator]
        assert got == list(range(40)), got
        assert iterator.restarts == 0
        print("fine")
        """,
    )
    assert run(path, flags=TELLING).ok().lines == ["fine"]


class Interrupting(Sampler[int]):
    """Ctrl-C comes while the loader takes in its index: in the middle of the crew's work, not while it waits."""

    def __init__(self, size: int, at: int) -> None:
        self.size, self.at = size, at

    def __iter__(self) -> Iterator[int]:
        for index in range(self.size):
            if index == self.at:
                self.at = -1
                signal.raise_signal(signal.SIGINT)
            yield index

    def __len__(self) -> int:
        return self.size


class Noisy(Dataset[Any]):
    def __getitem__(self, index: int) -> Any:
        return index, torch.rand(()).item()


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("interrupted_at", [17, 22, 39])  # iter() takes the first 16
def test_an_iterator_goes_on_with_the_batch_that_was_due_when_it_is_interrupted_at_work(persistent, interrupted_at):
    def run(at: int) -> tuple[list[Any], int]:
        torch.manual_seed(1)
        options = {"batch_size": 4, "num_workers": 2, "persistent_workers": persistent, "collate_fn": tuple}
        loader = DataLoader(Noisy(), sampler=Interrupting(40, at), **options)
        got, interrupts, batches = [], 0, None
        while True:
            try:
                batches = batches or iter(loader)
                got.append(next(batches))
            except KeyboardInterrupt:
                interrupts += 1
            except StopIteration:
                break
        later = list(loader)
        assert len(later) == 10
        loader._iterator = None
        return got + later, interrupts

    expected, _ = run(-1)
    got, interrupts = run(interrupted_at)
    assert interrupts == 1
    assert got == expected


def test_the_workers_of_a_persistent_iterator_end_with_it_when_its_loader_is_gone():
    iterator = iter(DataLoader(NUMBERS, num_workers=2, persistent_workers=True))
    next(iterator)
    ends = Ends(worker.pid for worker in iterator._workers)
    gc.disable()  # nothing may hold it in a cycle
    try:
        del iterator
        assert ends.wait(PATIENCE) == []
    finally:
        gc.enable()
