"""DataLoader(pool=...): the batches are those of workers of its own, and the processes are the pool's."""

from __future__ import annotations

import os
import pickle
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import deeds
import numpy
import pytest
import torch
from deeds import SQUARES, square
from torch.utils.data import IterableDataset, get_worker_info

from holdfast import (
    CannotSend,
    CannotShip,
    DataLoader,
    Pool,
    PoolBroken,
    Replace,
    RestartsSpent,
    Retry,
    SharedMemoryFull,
    Skip,
    WorkerDied,
    WorkerStalled,
    per_worker,
)
from holdfast._system import proc
from holdfast.testing import DiesAt, ExitsAt, Faulty, HangsAt, QuitsAt, RaisesAt, SegfaultsAt

pytestmark = pytest.mark.timeout(45)
MIB = 1 << 20


class Noisy:
    """Each sample is its index and random numbers of all three kinds, enough for the arena in a batch."""

    def __init__(self, length: int = 22) -> None:
        self.length, self.epoch = length, 0

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return index, torch.rand(3), random.random(), numpy.random.rand(200), self.epoch


class AtOnce(Noisy):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [{"index": index, "noise": [torch.rand(2, 300), f"{index}"]} for index in indices]


class Who(Noisy):
    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        return index, os.getpid(), info.id, info.num_workers


class Vast(Noisy):
    def __init__(self, size: int) -> None:
        super().__init__(8)
        self.bytes = numpy.full(size, 7, numpy.uint8)

    def __getitem__(self, index: int) -> int:
        return int(self.bytes[index :: len(self)].max())


class Waits(Noisy):
    """A sample waits for a file."""

    def __init__(self, sample: int, path: Path) -> None:
        super().__init__(8)
        self.sample, self.path = sample, path

    def __getitem__(self, index: int) -> int:
        if index == self.sample:
            deeds.wait_for(self.path, index)
        return index


def rests(pid: int) -> bool:
    """It sleeps and is not woken for a tenth of a second, as it is all the time by a wait for the interpreter."""
    before = switches(pid)
    time.sleep(0.1)
    return switches(pid) == before and proc.look(pid).state == "S"


def switches(pid: int) -> list[str]:
    status = Path(f"/proc/{pid}/task/{pid}/status").read_text()
    return [line for line in status.splitlines() if "ctxt_switches" in line]


class Interrupts(Noisy):
    """Once, when the trainer waits for a sample, there is a Ctrl-C."""

    def __init__(self, trainer: int, folder: Path) -> None:
        super().__init__(12)
        self.trainer, self.folder = trainer, folder

    def __getitem__(self, index: int) -> int:
        if index == 4:
            deeds.await_file(self.folder / "waits")
            while not rests(self.trainer):
                pass
            if not (self.folder / "sent").exists():
                (self.folder / "sent").touch()
                os.kill(self.trainer, signal.SIGINT)
            deeds.await_file(self.folder / "interrupted")
        return index


class Refuses:
    def __len__(self) -> int:
        return 4

    def __getstate__(self) -> dict[str, Any]:
        return {"any": 1}

    def __setstate__(self, state: dict[str, Any]) -> None:
        raise LookupError("not in this process")


class Resource:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def close(self) -> None:
        (self.folder / f"closed {os.getpid()}").touch()


class Holds(Noisy):
    def __init__(self, folder: Path) -> None:
        super().__init__(8)
        self.resource = per_worker(Resource, folder)

    def __getitem__(self, index: int) -> int:
        assert self.resource.folder.exists()
        return index


@pytest.fixture
def pool():
    with Pool(2) as pool:
        yield pool
        if not pool._works.closed:
            assert pool.map(square, range(10)) == SQUARES  # whatever was done to it
            assert pool.map(worker_info, range(4)) == [None] * 4
    pool.join()


def pids_of(pool: Pool) -> set[int]:
    with pool._works.lock:
        return {process.pid for process in pool.processes}


def await_that(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def worker_info(_: int) -> Any:
    return get_worker_info()


def plain(value: Any) -> Any:
    """Comparable with ==, and with nothing of the arena left in it."""
    if isinstance(value, torch.Tensor | numpy.ndarray):
        return value.dtype, value.tolist()
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    return [plain(member) for member in value] if isinstance(value, list | tuple) else value


def epochs(dataset: Any, count: int = 2, **options: Any) -> list[Any]:
    torch.manual_seed(11)
    loader = DataLoader(dataset, **{"batch_size": 4, "shuffle": True, **options})
    return [plain(batch) for _ in range(count) for batch in loader]


# -- the same batches --------------------------------------------------------------------------------


def reseed(seat: int) -> None:
    torch.manual_seed(5)


def set_up(seat: int) -> None:
    info = get_worker_info()
    assert info.id == seat
    info.dataset.epoch = 40


def tupled(samples: list[Any]) -> Any:
    return tuple(zip(*samples, strict=True)), torch.rand(2)


WAYS: dict[str, tuple[Any, dict[str, Any]]] = {
    "usual": (Noisy(), {}),
    "in one go": (AtOnce(), {}),
    "init": (Noisy(), {"worker_init_fn": set_up}),
    "own seed": (Noisy(), {"worker_init_fn": reseed}),
    "collate_fn": (Noisy(), {"collate_fn": tupled}),
    "no batches": (Noisy(), {"batch_size": None}),
    "drop_last": (Noisy(), {"drop_last": True, "prefetch_factor": 4}),
    "persistent": (Noisy(), {"persistent_workers": True}),
}


@pytest.mark.parametrize("way", WAYS)
def test_batches_are_those_of_workers_of_its_own(way, pool):
    dataset, options = WAYS[way]
    expected = epochs(dataset, num_workers=2, **options)
    assert epochs(dataset, pool=pool, **options) == expected
    assert epochs(dataset, pool=pool, num_workers=3, **options) == expected


def test_settings_are_the_loaders_while_it_loads_and_the_pools_otherwise(pool):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        expected = epochs(Noisy(), num_workers=2)
        assert epochs(Noisy(), pool=pool) == expected
        assert pool.apply(torch.get_default_dtype) == before
    finally:
        torch.set_default_dtype(before)


def seed(value: int) -> None:
    random.seed(value)


def draw() -> float:
    return random.random()


def test_other_tasks_find_random_state_as_they_left_it():
    with Pool(1, seed=False) as pool:
        pool.apply(seed, (3,))
        epochs(Noisy(), pool=pool)
        assert pool.apply(draw) == random.Random(3).random()
    pool.join()


def test_a_changed_attribute_reaches_every_process(pool):
    dataset, seen = Noisy(), []
    loader = DataLoader(dataset, batch_size=2, pool=pool, persistent_workers=True)
    for epoch in range(4):
        dataset.epoch = epoch
        seen.append({int(number) for batch in loader for number in batch[4]})
    assert seen == [{0}, {1}, {2}, {3}]
    loader._iterator = None


def test_a_state_goes_on_in_the_middle_with_a_pool_or_without(pool):
    torch.manual_seed(4)
    loader = DataLoader(Noisy(), batch_size=4, shuffle=True, pool=pool)
    batches = iter(loader)
    for _ in range(2):
        next(batches)
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    rest = [plain(batch) for batch in batches]
    for options in ({"pool": pool}, {"num_workers": 2}, {}):
        other = DataLoader(Noisy(), batch_size=4, shuffle=True, **options)
        other.load_state_dict(state)
        assert [plain(batch) for batch in other] == rest
    assert len(rest) == 4


# -- shared ------------------------------------------------------------------------------------------


def test_loaders_and_tasks_take_turns(pool):
    expected = epochs(Noisy(), 1, num_workers=2), epochs(AtOnce(), 1, num_workers=2)
    torch.manual_seed(11)
    train = iter(DataLoader(Noisy(), batch_size=4, shuffle=True, pool=pool))
    torch.manual_seed(11)
    validation = DataLoader(AtOnce(), batch_size=4, shuffle=True, pool=pool)
    begun = [plain(next(train)) for _ in range(3)]
    background = pool.map_async(square, range(10))
    middle = iter(validation)
    found = [plain(next(middle)), plain(next(middle))]
    assert pool.map(square, range(10)) == SQUARES
    begun += [plain(batch) for batch in train]
    found += [plain(batch) for batch in middle]
    assert (begun, found) == expected
    assert background.get(20) == SQUARES


def test_no_process_is_added(pool):
    pids = pids_of(pool)
    found = [[column.tolist() for column in batch] for batch in DataLoader(Who(64), batch_size=2, pool=pool)]
    assert {pid for batch in found for pid in batch[1]} <= pids
    assert {seat for batch in found for seat in batch[2]} <= {0, 1}
    assert {seats for batch in found for seats in batch[3]} == {2}
    assert pids_of(pool) == pids


def test_several_threads_may_iterate_at_once(pool):
    expected = epochs(Noisy(), num_workers=2)
    found: list[Any] = [None] * 3
    loaders = [DataLoader(Noisy(), batch_size=4, pool=pool, sampler=range(22)) for _ in found]

    def load(place: int) -> None:
        found[place] = sorted(index for _ in range(2) for batch in loaders[place] for index in batch[0].tolist())

    threads = [threading.Thread(target=load, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [sorted([*range(22)] * 2)] * 3
    assert epochs(Noisy(), pool=pool) == expected


def private_memory(_: int) -> int:
    """Bytes that only this process has."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


def test_a_data_set_is_there_once_for_all_processes(tmp_path):
    with Pool(2) as pool:
        for result in [pool.apply_async(deeds.meet, (tmp_path, number, 2)) for number in range(2)]:
            result.get(20)
        before = sum(pool.map(private_memory, range(2), chunksize=1))
        train, validation = iter(DataLoader(Vast(64 * MIB), pool=pool)), iter(DataLoader(Vast(64 * MIB), pool=pool))
        assert [int(next(loader)) for loader in (train, validation) for _ in range(4)] == [7] * 8
        grown = sum(pool.map(private_memory, range(2), chunksize=1)) - before
    pool.join()
    assert grown < 64 * MIB  # of 256, if each process had its own


def test_a_data_set_is_dropped_with_the_iterator(pool, tmp_path):
    batches = iter(DataLoader(Holds(tmp_path), pool=pool))
    assert [int(next(batches)) for _ in range(3)] == [0, 1, 2]
    assert not list(tmp_path.iterdir())
    del batches
    await_that(lambda: list(tmp_path.iterdir()))
    assert pool.map(square, range(10)) == SQUARES
    assert not pool._works.background


def test_batches_that_are_kept_stay_as_they_are(pool):
    kept = list(DataLoader(Noisy(), batch_size=4, pool=pool))
    again = list(DataLoader(Noisy(), batch_size=4, pool=pool))
    pool.terminate()
    assert [int(index) for batch in kept for index in batch[0]] == [*range(22)]
    kept[0][3][:] = 0.0  # writable
    assert len(again) == 6


# -- deaths ------------------------------------------------------------------------------------------

ENDS = [
    DiesAt(7, once=True),
    SegfaultsAt(7, once=True),
    ExitsAt(7, 0, once=True),
    QuitsAt(7, 3, once=True),
    RaisesAt(7, KeyboardInterrupt, once=True),
]


@pytest.mark.parametrize("fault", ENDS, ids=str)
def test_a_batch_survives_its_worker(fault):
    expected = epochs(Noisy(), num_workers=2)
    with Pool(2, retries=3) as pool:  # which are not for loaders
        torch.manual_seed(11)
        loader = DataLoader(Faulty(Noisy(), fault), batch_size=4, shuffle=True, pool=pool)
        assert [plain(batch) for _ in range(2) for batch in loader] == expected
        assert pool.map(square, range(10)) == SQUARES
    pool.join()
    [death] = loader.faults
    assert (loader.restarts, death.kind, death.action, death.index) == (1, "death", "restarted", 7)


@pytest.mark.parametrize("fault", [DiesAt(7), SegfaultsAt(7), QuitsAt(7, 3)], ids=str)
def test_a_poison_sample_is_named(fault, pool):
    pids = pids_of(pool)
    loader = DataLoader(Faulty(Noisy(), fault), batch_size=4, pool=pool)
    with pytest.raises(WorkerDied) as caught:
        list(loader)
    died = caught.value
    assert (died.batch, died.sample, died.attempts) == (1, 7, 2)
    assert died.verdict.doing.startswith("fetching sample 7 of batch 1")
    assert died.verdict.status == {"DiesAt": -9, "SegfaultsAt": -11, "QuitsAt": 3}[type(fault).__name__]
    assert died.pid in pids or not isinstance(fault, QuitsAt)
    await_that(lambda: (pids == pids_of(pool)) == isinstance(fault, QuitsAt))  # which ends no process of the pool's
    assert (died.pid in pids_of(pool)) == isinstance(fault, QuitsAt)
    assert ("in strike" in died.verdict.stack) == (not isinstance(fault, DiesAt))


def test_a_poison_sample_is_skipped(pool):
    loader = DataLoader(Faulty(Noisy(), DiesAt(7)), batch_size=4, pool=pool, on_error="skip")
    own = DataLoader(Faulty(Noisy(), DiesAt(7)), batch_size=4, num_workers=2, on_error="skip")
    torch.manual_seed(1)
    found = [plain(batch) for batch in loader]
    torch.manual_seed(1)
    assert found == [plain(batch) for batch in own]
    assert [fault.action for fault in loader.faults] == ["restarted", "skipped"]


def test_a_worker_killed_from_outside_takes_only_its_batch(pool, tmp_path):
    go = tmp_path / "go"
    loader = DataLoader(Waits(2, go), pool=pool)
    batches = iter(loader)
    assert int(next(batches)) == 0
    os.kill(int(deeds.await_file(tmp_path / "began 2")), signal.SIGKILL)
    go.touch()
    assert [int(batch) for batch in batches] == [*range(1, 8)]
    assert loader.faults[0].index == 2


class DiesOnArrival(Noisy):
    def __setstate__(self, state: dict[str, Any]) -> None:
        os._exit(3)


BEFORE_THE_FIRST = {
    "unpacking the data set": (DiesOnArrival(), None),
    "running worker_init_fn": (Noisy(), lambda seat: os._exit(3)),
}


@pytest.mark.parametrize("doing", BEFORE_THE_FIRST)
def test_a_data_set_that_ends_its_workers_at_once_is_given_up(doing, pool):
    dataset, init = BEFORE_THE_FIRST[doing]
    others = iter(DataLoader(Noisy(), pool=pool))
    next(others)
    with pytest.raises(RestartsSpent) as caught:
        list(DataLoader(dataset, pool=pool, worker_init_fn=init))
    assert caught.value.verdict.status == 3
    assert caught.value.verdict.doing.startswith(doing)
    assert len(list(others)) == 21


# -- faults and silence ------------------------------------------------------------------------------

POLICIES = {
    "skip": Skip(),
    "replace": Replace(),
    "retry": Retry(2, on=ValueError),
    "function": lambda fault: "skip",
}


@pytest.mark.parametrize("name", POLICIES)
def test_policies_are_kept(name, pool):
    found, ledgers = [], []
    for options in ({"num_workers": 2}, {"pool": pool}):
        torch.manual_seed(2)
        fault = RaisesAt(7, ValueError("rotten"), once=name == "retry")
        loader = DataLoader(Faulty(Noisy(), fault), batch_size=4, shuffle=True, on_error=POLICIES[name], **options)
        found.append([plain(batch) for _ in range(2) for batch in loader])
        ledgers.append([(one.index, one.action, one.epoch, one.batch) for one in loader.faults])
    assert found[0] == found[1]
    assert ledgers[0] == ledgers[1] != []


def test_the_users_exception_is_raised_as_itself(pool):
    loader = DataLoader(Faulty(Noisy(), RaisesAt(7, ValueError("rotten"))), batch_size=4, pool=pool)
    batches = iter(loader)
    assert next(batches)[0].tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="rotten") as caught:
        next(batches)
    assert "sample 7" in "".join(caught.value.__notes__) or "index 7" in "".join(caught.value.__notes__)
    assert next(batches)[0].tolist() == [8, 9, 10, 11]


def test_a_stalled_sample_is_ended_with_its_process_and_skipped(pool):
    pids = pids_of(pool)
    loader = DataLoader(Faulty(Noisy(), HangsAt(7)), batch_size=4, pool=pool, stall_timeout=0.5, on_error="skip")
    assert len(list(loader)) == 6
    [stall] = loader.faults
    assert (stall.kind, stall.index, stall.action) == ("stall", 7, "skipped")
    assert isinstance(stall.error, WorkerStalled)
    assert stall.pid in pids
    assert "in strike" in stall.error.stack
    await_that(lambda: stall.pid not in pids_of(pool))


def test_to_wait_for_a_busy_pool_is_no_stall(pool, tmp_path):
    go = tmp_path / "go"
    busy = [pool.apply_async(deeds.wait_for, (go, number)) for number in range(2)]
    loader = DataLoader(Noisy(), batch_size=4, pool=pool, stall_timeout=0.2, timeout=1.0)
    batches = iter(loader)
    with pytest.raises(RuntimeError, match="timed out"):
        next(batches)
    assert not loader.faults
    go.touch()
    assert [result.get(20) for result in busy] == [0, 1]
    assert len(list(batches)) == 6


def test_what_cannot_be_sent_is_named(pool):
    with pytest.raises(CannotSend, match="batch"):
        next(iter(DataLoader(Noisy(), pool=pool, collate_fn=lambda samples: [threading.Lock()])))
    dataset = Noisy()
    dataset.lock = threading.Lock()
    with pytest.raises(CannotShip, match=r"dataset\.lock"):
        iter(DataLoader(dataset, pool=pool))


def fail(seat: int) -> None:
    raise LookupError("no set-up today")


def test_an_error_before_the_first_batch_is_raised_as_itself(pool):
    with pytest.raises(LookupError, match="no set-up today"):
        list(DataLoader(Noisy(), pool=pool, worker_init_fn=fail))
    with pytest.raises(LookupError, match="not in this process"):
        list(DataLoader(Refuses(), pool=pool))


def test_memory_has_the_limit_of_the_pool():
    with Pool(2, max_shared_memory=3 * MIB) as pool, pytest.raises(SharedMemoryFull):
        iter(DataLoader(Vast(8 * MIB), pool=pool))
    pool.join()


# -- ends --------------------------------------------------------------------------------------------


def test_an_interrupt_costs_no_batch_and_no_worker(pool, tmp_path):
    pids, loader = pids_of(pool), DataLoader(Interrupts(os.getpid(), tmp_path), pool=pool)
    batches = iter(loader)
    assert [int(next(batches)) for _ in range(4)] == [0, 1, 2, 3]
    (tmp_path / "waits").touch()
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    (tmp_path / "interrupted").touch()
    assert [int(batch) for batch in batches] == [*range(4, 12)]
    assert pids_of(pool) == pids


def test_an_iterator_that_is_left_leaves_the_pool_to_others(pool, tmp_path):
    go = tmp_path / "go"
    batches = iter(DataLoader(Waits(2, go), pool=pool))
    next(batches)
    deeds.await_file(tmp_path / "began 2")
    batches._shutdown_workers()
    assert pool.apply(square, (3,)) == 9  # in the process that is free
    go.touch()


def test_what_is_not_begun_is_taken_back(tmp_path):
    with Pool(1) as pool:
        go = tmp_path / "go"
        busy = pool.apply_async(deeds.wait_for, (go,))
        batches = iter(DataLoader(Waits(0, tmp_path / "never"), pool=pool, timeout=0.2))
        with pytest.raises(RuntimeError, match="timed out"):
            next(batches)
        assert pool._works.background == 2
        del batches
        await_that(lambda: pool._works.background == 1)
        go.touch()
        assert busy.get(20) == 0
        assert pool.map(square, range(10)) == SQUARES
    pool.join()


@pytest.mark.parametrize("persistent", [True, False])
def test_an_epoch_that_is_left_is_no_part_of_the_next(persistent, pool):
    expected = [[*range(20)]] * 3
    loader = DataLoader(Noisy(20), batch_size=2, pool=pool, persistent_workers=persistent, prefetch_factor=4)
    found = []
    for _ in range(3):
        next(iter(loader))
        found.append([int(index) for batch in loader for index in batch[0]])
    assert found == expected
    loader._iterator = None


def test_a_pool_that_is_ended_is_the_error_of_the_next_batch(pool):
    batches = iter(DataLoader(Noisy(400), pool=pool))
    next(batches)
    pool.terminate()
    with pytest.raises(PoolBroken):
        for _ in batches:
            pass


def test_a_pool_that_is_closed_takes_no_loader(pool):
    loader = DataLoader(Noisy(), pool=pool)
    pool.close()
    with pytest.raises(ValueError, match="Pool not running"):
        iter(loader)
    pool.join()


def test_a_pool_of_another_process_is_refused(pool):
    loader = DataLoader(Noisy(), pool=pool)
    child = os.fork()
    if not child:
        try:
            iter(loader)
        except RuntimeError as error:
            os._exit(int("this pool belongs to process" not in str(error)))
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# -- what it is given --------------------------------------------------------------------------------


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        return iter(range(4))


def test_arguments_that_do_not_go_with_a_pool_are_refused(pool):
    with pytest.raises(ValueError, match="map-style"):
        DataLoader(Stream(), pool=pool)
    with pytest.raises(TypeError, match=r"pool should be a holdfast\.Pool"):
        DataLoader(Noisy(), pool=4)
    for name, value in {"workers": "thread", "start": "spawn", "recycle_after": 3, "max_worker_memory": MIB}.items():
        with pytest.raises(ValueError, match=f"{name}=.*the pool's"):
            DataLoader(Noisy(), pool=pool, **{name: value})


def test_the_pool_is_an_attribute_and_does_not_travel(pool):
    loader = DataLoader(Noisy(), pool=pool)
    assert (loader.pool, loader.num_workers) == (pool, 2)
    assert DataLoader(Noisy(), pool=pool, num_workers=5).num_workers == 5
    assert DataLoader(Noisy()).pool is None
    with pytest.raises(NotImplementedError, match="pool objects cannot be passed between processes"):
        pickle.dumps(loader)


@pytest.mark.parametrize("start", ["fork", "standby"])
def test_pools_of_all_kinds(start):
    expected = epochs(Noisy(), num_workers=2)
    with Pool(1, start=start) as pool:
        assert epochs(Faulty(Noisy(), DiesAt(7, once=True)), pool=pool) == expected
    pool.join()
