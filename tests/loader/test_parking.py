"""``next(iter(loader))`` for every step: said once, and the workers are used again where nobody can tell. F54."""

from __future__ import annotations

import copy
import os
import pickle
import random
import signal
import time
import warnings
from typing import Any

import numpy
import psutil
import pytest
import torch
from small_datasets import Squares
from torch.utils.data import Dataset

from holdfast import DataLoader, IteratorPerStep
from holdfast._engine import parking

STEPS = 8


class Noisy(Dataset):
    """What a sample is, and what a worker's random numbers and its own idea of itself are."""

    def __init__(self, length: int = 100) -> None:
        self.values = list(range(length))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        numbers = torch.rand(()).item(), float(numpy.random.rand()), random.random()
        return self.values[index], *numbers


class WhoAmI(Squares):
    def __getitem__(self, index: int) -> tuple[int, int]:
        info = torch.utils.data.get_worker_info()
        return os.getpid(), info.seed - info.id


def steps(loader: Any, count: int = STEPS) -> list[Any]:
    return [next(iter(loader)) for _ in range(count)]


def workers_of(loader: Any) -> set[int]:
    """Who is there for a loader that nobody iterates."""
    parked = loader._parking._parked
    return {process.pid for process in parked.crew.processes} if parked else set()


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IteratorPerStep)
        yield


def test_it_is_said_once_and_where():
    loader = DataLoader(Squares(100), num_workers=2)
    with pytest.warns(IteratorPerStep, match=r"batches = iter\(loader\).*HF406") as told:
        steps(loader)
    assert len(told) == 1
    assert told[0].filename == __file__


def test_the_same_workers_are_used_again():
    batches = steps(DataLoader(WhoAmI(100), num_workers=1, collate_fn=tuple))
    pids, seeds = ([sample[0][i] for sample in batches] for i in range(2))
    assert pids[0] != pids[1]
    assert set(pids[1:]) == {pids[1]}
    assert len(set(seeds)) == STEPS  # as new workers would have


@pytest.mark.parametrize("options", [{"shuffle": True}, {"shuffle": True, "batch_size": 4}], ids=str)
def test_every_step_is_what_new_workers_would_have_given(options):
    def drawn(**more: Any) -> Any:
        torch.manual_seed(7)
        batches = steps(DataLoader(Noisy(), collate_fn=list, **options, **more))
        return batches, torch.rand(()).item()

    assert drawn(num_workers=2) == drawn(num_workers=0)


def test_a_data_set_that_changed_is_what_is_loaded():
    dataset = Noisy()
    loader = DataLoader(dataset, num_workers=2, collate_fn=list)
    for step in range(STEPS):
        dataset.values[0] = 1000 + step  # deep inside: a buffer that grows
        assert next(iter(loader))[0][0] == 1000 + step


def test_settings_that_changed_are_kept_to(monkeypatch):
    loader = DataLoader(Squares(100), num_workers=1, collate_fn=lambda samples: os.environ.get("STEP", "none"))
    assert set(steps(loader)) == {"none"}
    monkeypatch.setenv("STEP", "one")
    assert set(steps(loader)) == {"one"}
    loader.collate_fn = len
    assert set(steps(loader)) == {1}
    loader.num_workers = 2
    steps(loader)
    assert len(workers_of(loader)) == 2


def test_a_whole_epoch_is_whole_and_ends_the_workers():
    loader = DataLoader(Squares(10), batch_size=4, num_workers=2)
    steps(loader)
    parked = workers_of(loader)
    assert len(parked) == 2
    assert [batch.tolist() for batch in loader] == [[0, 1, 4, 9], [16, 25, 36, 49], [64, 81]]
    assert workers_of(loader) == set()
    assert not any(psutil.pid_exists(pid) for pid in parked)
    steps(loader, 2)
    assert len(workers_of(loader)) == 2  # a habit takes two again
    steps(loader, 1)


def test_the_end_of_the_loader_ends_them():
    loader = DataLoader(Squares(100), num_workers=2)
    steps(loader)
    pids = workers_of(loader)
    assert len(pids) == 2
    del loader
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_one_break_is_no_habit_and_ends_them_at_once():
    loader = DataLoader(WhoAmI(100), num_workers=2, collate_fn=tuple)
    for batch in loader:
        break
    assert not psutil.pid_exists(batch[0][0])
    for number, _ in enumerate(loader):
        if number == parking.FEW:
            break
    steps(loader, 1)
    assert workers_of(loader) == set()


def test_a_look_now_and_then_is_no_habit(monkeypatch):
    monkeypatch.setattr(parking, "RECENT", 0.0)
    loader = DataLoader(Squares(100), num_workers=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        steps(loader)
    assert workers_of(loader) == set()


class Rolls(Noisy):
    def __init__(self) -> None:
        super().__init__()
        self.rng = random.Random(0)


@pytest.mark.parametrize(
    ("dataset", "options"),
    [
        (Rolls(), {}),
        (Squares(100), {"worker_init_fn": print}),
        (Squares(100), {"start": "fork"}),
        (Squares(100), {"workers": "thread"}),
    ],
    ids=["a generator of its own", "worker_init_fn", "fork", "thread"],
)
def test_workers_that_are_not_as_new_are_not_used_again(dataset, options, capfd):
    loader = DataLoader(dataset, num_workers=1, **options)
    steps(loader, 4)
    assert workers_of(loader) == set()


def test_workers_that_died_meanwhile_are_replaced():
    loader = DataLoader(Squares(100), num_workers=2)
    steps(loader)
    for pid in workers_of(loader):
        os.kill(pid, signal.SIGKILL)
    assert [int(batch) for batch in steps(loader)] == [0] * STEPS


class Slow(Squares):
    def __getitem__(self, index: int) -> int:
        if index:
            time.sleep(60)
        return os.getpid()


def test_workers_that_are_busy_for_long_are_not_waited_for():
    loader = DataLoader(Slow(100), num_workers=2)
    began = time.monotonic()
    pids = [int(batch) for batch in steps(loader, 5)]
    assert len(set(pids)) == 5
    assert time.monotonic() - began < 30


def test_copies_of_a_loader_have_no_workers_of_its():
    loader = DataLoader(Squares(100), num_workers=2)
    steps(loader)
    for other in (pickle.loads(pickle.dumps(loader)), copy.deepcopy(loader)):
        assert workers_of(other) == set()
        assert int(next(iter(other))) == 0
    assert len(workers_of(loader)) == 2


@pytest.mark.slow
def test_a_fork_of_the_trainer_leaves_them_alone():
    loader = DataLoader(Squares(100), num_workers=2)
    steps(loader)
    pids = workers_of(loader)
    child = os.fork()
    if not child:
        status = 1
        try:
            status = int([int(batch) for batch in steps(loader, 2)] != [0, 0])
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert int(next(iter(loader))) == 0
    assert workers_of(loader) == pids
