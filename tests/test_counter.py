"""A number that all workers add to, exact whoever is killed."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import pytest
import torch.utils.data
from torch.utils.data import Dataset

from holdfast import DataLoader, counter
from holdfast.counter import Counter
from holdfast.testing import DiesAt, Faulty

SAMPLES = 40


@pytest.fixture(params=["anonymous", "file"])
def kind(request, monkeypatch):
    """Where /proc shows nobody's descriptors, the memory is a file: both ways work here."""
    monkeypatch.setattr(counter, "ANONYMOUS", request.param == "anonymous")
    return request.param


class Counts(Dataset):
    """Adds ``index`` for each sample."""

    def __init__(self) -> None:
        self.seen = Counter()

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> int:
        self.seen += index
        return index


def load(dataset, epochs: int = 1, **how) -> None:
    loader = DataLoader(dataset, **{"batch_size": 4, "num_workers": 2, "timeout": 60, **how})
    for _ in range(epochs):
        assert sum(len(batch) for batch in loader) == SAMPLES


ALL = sum(range(SAMPLES))


@pytest.mark.parametrize("start", ["zygote", "standby", "fork", "spawn"])
def test_processes_of_every_kind_add_up(kind, start):
    if kind == "file" and start == "spawn":
        pytest.skip("standby finds it in the same way")
    dataset, epochs = Counts(), 2 if start in ("zygote", "fork") else 1
    dataset.seen.add(7)
    load(dataset, epochs=epochs, start=start)
    assert dataset.seen.value == 7 + epochs * ALL


def test_threads_and_the_trainer_itself_add_up():
    dataset = Counts()
    load(dataset, workers="thread", num_workers=4)
    load(dataset, num_workers=0, timeout=0)
    assert int(dataset.seen) == 2 * ALL


def test_torchs_own_loader_adds_up():
    dataset = Counts()
    list(torch.utils.data.DataLoader(dataset, num_workers=2, multiprocessing_context="fork"))
    assert dataset.seen.value == ALL


SEEN = Counter()


def test_a_global_of_a_function_by_value_adds_up():
    def collate(samples: list[int]) -> list[int]:
        SEEN.add(len(samples))
        return samples

    collate.__module__ = "__main__"  # so it travels by value, with its globals
    before = SEEN.value
    load(range(SAMPLES), collate_fn=collate)
    assert SEEN.value - before == SAMPLES


# -- kills


class Logged(Counts):
    """Writes a byte to a file before it adds, and one to another after: what it really did, whenever it is killed."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.begun, self.done = folder / "begun", folder / "done"
        self.begun.touch()
        self.done.touch()

    def __getitem__(self, index: int) -> int:
        _append(self.begun)
        self.seen += 1
        _append(self.done)
        return index

    def tally(self) -> tuple[int, int, int]:
        return self.done.stat().st_size, self.seen.value, self.begun.stat().st_size


def _append(path: Path) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(fd, b"1")
    os.close(fd)


class Kills(Faulty):
    """The fault strikes after the sample was loaded."""

    def __getitem__(self, index: int) -> int:
        sample = self.dataset[index]
        for fault in self.faults:
            fault.meet(index)
        return sample


@pytest.mark.parametrize("start", ["zygote", "fork"])
def test_what_the_killed_have_added_counts(tmp_path, start):
    dataset = Logged(tmp_path)
    faults = [DiesAt(index, once=True) for index in (3, 13, 22, 37)]
    load(Kills(dataset, *faults), start=start)
    assert all(fault.once.struck() for fault in faults)
    done, value, begun = dataset.tally()
    assert done == value == begun
    assert value > SAMPLES  # some were loaded again, and count again


ADDS = """
    import pickle, sys
    counter = pickle.load(sys.stdin.buffer)
    sys.stdout.write("x")
    sys.stdout.flush()
    while True:
        counter.add()
        sys.stdout.write("x")
        sys.stdout.flush()
"""


def test_who_is_killed_in_the_middle_of_adding_harms_nobody(kind):
    """What a process says it has added is in its pipe; it can have added one more, and no other number."""
    total, said, rounds = Counter(), 0, 5
    for killed in range(rounds):
        adder = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(ADDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        adder.stdin.write(pickle.dumps(total))
        adder.stdin.close()
        heard = adder.stdout.read(1000 + 37 * killed)  # it is adding now
        adder.kill()
        said += len(heard + adder.stdout.read()) - 1
        adder.wait()
        adder.stdout.close()
        assert said <= total.value <= said + killed + 1
    before = total.value
    total.add(5)
    assert total.value == before + 5


# -- handed on


def add_many(total: Counter, times: int) -> None:
    for _ in range(times):
        total.add(2)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_it_passes_to_plain_children_which_add_at_the_same_time(kind, start):
    total, context = Counter(), multiprocessing.get_context(start)
    total.add()  # so a fork inherits a cell
    processes = [context.Process(target=add_many, args=(total, 5000)) for _ in range(3 if start == "fork" else 1)]
    for process in processes:
        process.start()
    add_many(total, 5000)
    for process in processes:
        process.join()
        process.close()
    assert total.value == 1 + (1 + len(processes)) * 5000 * 2


def test_threads_add_at_the_same_time():
    total = Counter()
    threads = [threading.Thread(target=add_many, args=(total, 20_000)) for _ in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    assert total.value == 4 * 20_000 * 2


def test_copies_are_the_same_number_and_can_be_handed_on_when_the_first_is_gone():
    first = Counter()
    first += 3
    copies = [copy.copy(first), copy.deepcopy(first), pickle.loads(pickle.dumps(first))]
    for each in copies:
        each += 1
    assert [each.value for each in copies] == [6, 6, 6] == [first.value] * 3
    del first
    assert pickle.loads(pickle.dumps(copies[1])).value == 6


def test_a_counter_that_is_gone_is_not_mistaken_for_another():
    gone = pickle.dumps(Counter())
    with pytest.raises(RuntimeError, match="no longer held"):
        pickle.loads(gone)
    other = Counter()  # perhaps behind the same descriptor
    with pytest.raises(RuntimeError, match="no longer held"):
        pickle.loads(gone)
    assert other.value == 0


def test_reset_begins_at_zero_for_everybody():
    total = Counter()
    total += 41
    other = pickle.loads(pickle.dumps(total))
    other.reset()
    assert (total.value, other.value) == (0, 0)
    total.add(-2)
    assert (other.value, repr(other)) == (-2, "Counter(value=-2)")


def test_only_whole_numbers_count():
    total = Counter()
    with pytest.raises(TypeError):
        total.add(0.5)
    assert total.value == 0


TRAINER = """
    import os, signal
    import holdfast.counter
    holdfast.counter.ANONYMOUS = {anonymous}
    from holdfast.counter import Counter
    total = Counter()
    total.add()
    if not os.fork():
        total.add()
        os._exit(0)
    os.wait()
    assert total.value == 2
    print(os.getpid(), flush=True)
    {end}
"""


@pytest.mark.parametrize(("anonymous", "end"), [(True, "os.kill(os.getpid(), signal.SIGKILL)"), (False, "")])
def test_nothing_is_left_behind(anonymous, end):
    code = textwrap.dedent(TRAINER).format(anonymous=anonymous, end=end)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == (-9 if end else 0), done.stderr
    assert not list(Path(tempfile.gettempdir()).glob(f"holdfast-{done.stdout.strip()}-*"))
