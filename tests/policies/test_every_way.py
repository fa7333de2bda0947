"""Every way in which a sample can fail, in the middle of an epoch: raised with its true cause, or skipped alone."""

from __future__ import annotations

import gc
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import torch
from torch.utils.data import IterableDataset, default_collate
from trials import Noisy, indices, outcomes, trial

from holdfast import DataLoader, RemoteError, Skip, WorkerDied, WorkerStalled
from holdfast.errors import CannotSend, NoneSample, StopInItem
from holdfast.testing import (
    AbortsAt,
    DiesAt,
    ExitsAt,
    Faulty,
    GivesAt,
    HangsAt,
    QuitsAt,
    RaisesAt,
    SegfaultsAt,
    SpinsAt,
    StarvesAt,
    StopsAt,
)

BAD = 9  # the second sample of the third batch
ANYWHERE = ("processes", "threads", "trainer")
WORKERS = ("processes", "threads")
PROCESSES = ("processes",)


class TwoArguments(Exception):
    def __init__(self, path: str, line: int) -> None:
        super().__init__(f"{path}:{line}")
        self.path, self.line = path, line


class Holding(Exception):
    """Cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("holds a lock")
        self.lock = threading.Lock()


def as_it_is(samples: list[Any]) -> Any:
    return [torch.tensor([sample[0] if isinstance(sample, tuple) else -1 for sample in samples]), samples]


class Way(NamedTuple):
    fault: Any
    error: type[BaseException]
    says: str
    kind: str = "exception"
    crews: tuple[str, ...] = ANYWHERE
    options: Mapping[str, Any] = MappingProxyType({})
    check: Callable[[Any], bool] = lambda error: True


# Exceptions are made when they are raised: one that is kept here would keep the frames that it has passed.
WAYS = {
    "ValueError": Way(RaisesAt(BAD, lambda: ValueError("bad pixels")), ValueError, "bad pixels"),
    "OSError": Way(
        RaisesAt(BAD, lambda: OSError(5, "Input/output error", "/data/9.jpg")),
        OSError,
        "/data/9.jpg",
        check=lambda error: (error.errno, error.filename) == (5, "/data/9.jpg"),
    ),
    "two arguments": Way(
        RaisesAt(BAD, lambda: TwoArguments("a.txt", 3)), TwoArguments, "a.txt:3", check=lambda error: error.line == 3
    ),
    "unpicklable error": Way(RaisesAt(BAD, Holding), RemoteError, "holds a lock", crews=PROCESSES),
    "unpicklable error in the trainer": Way(RaisesAt(BAD, Holding), Holding, "", crews=("threads", "trainer")),
    "MemoryError": Way(StarvesAt(BAD), MemoryError, "", crews=PROCESSES),
    "StopIteration": Way(RaisesAt(BAD, StopIteration), StopInItem, "StopIteration"),
    "None": Way(GivesAt(BAD), NoneSample, "dataset[9] gave None", "batch"),
    "unpicklable sample": Way(
        GivesAt(BAD, threading.Lock), CannotSend, "lock", "batch", PROCESSES, {"collate_fn": as_it_is}
    ),
    "SIGKILL": Way(DiesAt(BAD), WorkerDied, "SIGKILL", "death", PROCESSES),
    "segfault": Way(SegfaultsAt(BAD), WorkerDied, "SIGSEGV", "death", PROCESSES),
    "abort": Way(AbortsAt(BAD), WorkerDied, "SIGABRT", "death", PROCESSES),
    "os._exit(0)": Way(ExitsAt(BAD, 0), WorkerDied, "status 0", "death", PROCESSES),
    "sys.exit(3)": Way(QuitsAt(BAD, 3), WorkerDied, "3", "death", WORKERS),
    "KeyboardInterrupt": Way(RaisesAt(BAD, KeyboardInterrupt), WorkerDied, "KeyboardInterrupt", "death", WORKERS),
    "hang": Way(HangsAt(BAD), WorkerStalled, "wait", "stall", PROCESSES, {"stall_timeout": 1}),
    "hang in C": Way(SpinsAt(BAD), WorkerStalled, "CPU", "stall", PROCESSES, {"stall_timeout": 1}),
    "SIGSTOP": Way(StopsAt(BAD), WorkerStalled, "stopped", "stall", PROCESSES, {"stall_timeout": 1}),
}
TRIALS = [pytest.param(way, crew, id=f"{name}-{crew}") for name, way in WAYS.items() for crew in way.crews]


@pytest.mark.parametrize(("way", "crew"), TRIALS)
def test_raised_with_sample_and_cause_and_the_loop_may_go_on(way: Way, crew: str):
    loader = trial(Faulty(Noisy(), way.fault), crew, **way.options)
    found = outcomes(loader)
    error = found.pop(2)
    assert found == [[n, n + 1, n + 2, n + 3] for n in (0, 4, 12, 16, 20)]
    assert isinstance(error, way.error)
    assert way.check(error)
    told = "\n".join([str(error), *getattr(error, "__notes__", ())])
    assert way.says in told
    assert re.search(r"sample 9 |dataset\[9\]|dataset index 9|8, 9, 10, 11", told)
    (fault,) = loader.faults.filter(action="raised")
    assert (fault.kind, fault.epoch, fault.batch, fault.lost) == (way.kind, 0, 2, (8, 9, 10, 11))
    assert type(fault.error) is type(error)
    assert way.check(fault.error)
    assert fault.traceback or way.kind in ("death", "stall")
    assert (fault.seat is None, fault.life is None, fault.pid is None) == ((crew == "trainer"),) * 3
    again = iter(loader)
    assert next(again)[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("way", "crew"), TRIALS)
def test_skipped_alone_and_its_place_filled(way: Way, crew: str):
    loader = trial(Faulty(Noisy(), way.fault), crew, on_error="skip", **way.options)
    found = indices(loader)
    stand_in = found[2][1]
    assert found == [[n if n != BAD else stand_in for n in range(first, first + 4)] for first in range(0, 24, 4)]
    assert stand_in in set(range(24)) - {8, 9, 10, 11}
    (fault,) = loader.faults.filter(action="skipped")
    assert (fault.kind, fault.index, fault.batch, fault.instead) == (way.kind, BAD, 2, stand_in)
    assert isinstance(fault.error, way.error)
    assert way.check(fault.error)
    assert fault.attempts == (2 if way.kind == "death" else 1)
    restarted = loader.faults.filter(action="restarted")
    assert len(restarted) == (1 if way.kind == "death" else 0)
    ended = {"death": 2, "stall": 1}.get(way.kind, 0)
    assert max(0, ended - 1) <= loader.restarts <= ended  # the last one may still be due when the epoch is over


class Waiting(Noisy):
    """One sample waits until it is released; nothing comes of it any more, as its thread has been given up."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index, self.release = index, threading.Event()

    def __getitem__(self, index: int) -> Any:
        if index == self.index:
            self.release.wait()
        return super().__getitem__(index)


@pytest.mark.parametrize("index", [9, 11])
def test_a_thread_that_hangs_is_let_go_and_its_sample_skipped(index):
    dataset = Waiting(index)
    loader = trial(dataset, "threads", on_error="skip", stall_timeout=1, prefetch_factor=1)
    try:
        found = indices(loader)
    finally:
        dataset.release.set()
    expected = [list(range(first, first + 4)) for first in range(0, 24, 4)]
    expected[2][index - 8] = found[2][index - 8]
    assert found == expected
    (fault,) = loader.faults
    assert (fault.kind, fault.index, fault.action, fault.instead) == ("stall", index, "skipped", found[2][index - 8])


def test_who_waits_for_the_user_has_not_stalled():
    """Results that lie in the pipe while the user computes for longer than ``stall_timeout`` are no sign of a stall."""
    loader, rest = trial(Noisy(48), on_error="skip", stall_timeout=1), threading.Event()
    found = []
    for batch in loader:
        found += batch[0].tolist()
        if len(found) in (4, 12):
            rest.wait(1.2)  # never set: this is the user's own work
    assert found == list(range(48))
    assert not loader.faults


class TurnsSlow:
    """Samples take no time, until they take a tenth of a second each; one of those hangs, if ``hangs`` says so."""

    def __init__(self, hangs: int = -1) -> None:
        self.hangs = hangs

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> int:
        if index > 32:
            threading.Event().wait(600 if index == self.hangs else 0.1)
        return index


class StreamTurnsSlow(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        samples = TurnsSlow()
        return (samples[index] for index in range(len(samples)))


@pytest.mark.parametrize("workers", ["process", "thread"])
@pytest.mark.parametrize("dataset", [TurnsSlow(), StreamTurnsSlow()], ids=["map", "stream"])
def test_samples_that_turn_slow_are_not_taken_for_one_that_hangs(dataset, workers):
    """Their batch takes four times as long as one sample may."""
    loader = DataLoader(dataset, batch_size=32, num_workers=1, workers=workers, stall_timeout=0.8)
    assert [batch.tolist() for batch in loader] == [list(range(32)), list(range(32, 64))]
    assert not loader.faults


def test_one_that_hangs_among_those_that_turn_slow_is_found():
    loader = DataLoader(TurnsSlow(hangs=48), batch_size=32, num_workers=1, stall_timeout=1, on_error=Skip(refill=False))
    assert [batch.tolist() for batch in loader][1] == [index for index in range(32, 64) if index != 48]
    (fault,) = loader.faults
    assert (fault.kind, fault.index) == ("stall", 48)


def test_an_error_that_the_ledger_keeps_does_not_keep_the_workers():
    loader = trial(Faulty(Noisy(), RaisesAt(BAD, ValueError("bad"))))
    gc.disable()  # by reference counts alone
    try:
        batches = iter(loader)
        workers = list(batches._workers)
        try:
            for _ in batches:
                pass
        except ValueError:
            pass
        del batches
        assert not any(worker.is_alive() for worker in workers)
    finally:
        gc.enable()
    assert [str(fault.error) for fault in loader.faults] == ["bad"]


def test_signals_and_exits_are_told_apart_from_what_collate_does():
    """A collate function that ends its worker at one sample: found by taking them one by one, and skipped."""

    def deadly(samples: list[Any]) -> Any:
        if any(sample[0] == BAD for sample in samples):
            signal.raise_signal(signal.SIGKILL)
        return default_collate(samples)

    loader = trial(Noisy(), collate_fn=deadly, on_error="skip")
    found = indices(loader)
    assert found[2][0::2] == [8, 10]
    assert BAD not in found[2]
    (fault,) = loader.faults.filter(action="skipped")
    assert (fault.kind, fault.index) == ("death", BAD)


def test_an_interrupt_in_the_trainer_itself_costs_its_batch_and_the_epoch_adds_up():
    loader = trial(Faulty(Noisy(), RaisesAt(BAD, KeyboardInterrupt, once=True)), "trainer", on_error="skip")
    batches = iter(loader)
    assert [next(batches)[0].tolist() for _ in range(2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    assert indices(batches) == [[12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23]]
    (fault,) = loader.faults
    assert (type(fault.error), fault.batch, fault.lost) == (KeyboardInterrupt, 2, (8, 9, 10, 11))
