"""What the workers are handed: once for all of them, with what was shared before still shared."""

from __future__ import annotations

import multiprocessing
import os
import threading
from typing import Any

import numpy
import pytest
import torch

from holdfast import CannotShip, DataLoader
from holdfast._engine.forking import ForkWarning
from holdfast._system.segments import MemfdSegment
from holdfast._transport.shipment import ship, unload

spawn = multiprocessing.get_context("spawn")
MIB = 1 << 20


class Rows(torch.utils.data.Dataset):
    """Asks ``question(self, index)`` in the worker; what else it is given it holds."""

    def __init__(self, length: int, question: Any, **members: Any) -> None:
        self.length, self.question = length, question
        vars(self).update(members)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        return self.question(self, index)


def loader(dataset: Rows, workers: int = 2, **options: Any) -> DataLoader:
    return DataLoader(dataset, batch_size=None, num_workers=workers, **options)


def trip(value: Any) -> Any:
    shipment = ship(value, MemfdSegment.create("holdfast-test"))
    try:
        return unload(shipment.segment.map_private(), shipment.manifest, shipment.fds)
    finally:
        shipment.close()


# -- copy-on-write -------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [numpy.zeros, torch.zeros, bytearray], ids=["array", "tensor", "bytearray"])
def test_every_worker_may_write_to_its_own_copy(make):
    def write(dataset: Rows, index: int) -> tuple[int, int]:
        dataset.memory[0] += 1
        return int(dataset.memory[0]), os.getpid()

    dataset = Rows(20, write, memory=make(100_000))
    calls: dict[int, int] = {}
    for count, pid in loader(dataset):
        calls[pid] = calls.get(pid, 0) + 1
        assert count == calls[pid]
    assert len(calls) == 2
    assert dataset.memory[0] == 0


def test_a_shipment_cannot_be_changed_by_anyone():
    shipment = ship(numpy.arange(10_000), MemfdSegment.create("holdfast-test"))
    with pytest.raises(PermissionError):
        os.pwrite(shipment.segment.fd, b"x", 0)
    with pytest.raises(PermissionError):
        os.ftruncate(shipment.segment.fd, 0)
    shipment.close()


def pss(pid: int) -> int:
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))


def test_two_workers_hold_one_copy_together():
    def touch(dataset: Rows, index: int) -> int:
        return int(dataset.memory.sum())

    def resident(size: int) -> int:
        batches = iter(loader(Rows(8, touch, memory=numpy.ones(size, numpy.uint8))))
        assert [next(batches) for _ in range(4)] == [size] * 4
        return sum(pss(worker.pid) for worker in batches._workers)

    size = 200 * MIB
    assert resident(size) - resident(MIB) < 1.15 * size


@pytest.mark.parametrize("start", ["zygote", "spawn", "fork"])
def test_a_dataset_of_all_kinds_of_memory_arrives(start):
    members = {
        "array": numpy.arange(50_000).reshape(5, 10_000)[:, ::2],
        "fortran": numpy.asfortranarray(numpy.arange(600.0).reshape(20, 30)),
        "tensor": torch.randn(100, 50).t(),
        "halves": torch.randn(3000).to(torch.bfloat16),
        "bytes": bytes(range(256)) * 400,
        "names": [f"n{i}" for i in range(3000)],
        "model": torch.nn.Linear(30, 40),
        "generator": torch.Generator().manual_seed(7),
    }
    expected = summary(Rows(1, summary, **members), 0)
    assert list(loader(Rows(1, summary, **members), 1, start=start)) == [expected]


def summary(dataset: Any, index: int) -> list[Any]:
    state = dataset.generator.get_state().sum().item()
    sums = [dataset.array.sum().item(), dataset.tensor.sum().item(), dataset.halves.float().sum().item()]
    form = [dataset.fortran.flags.f_contiguous, list(dataset.tensor.stride())]
    return [sums, form, dataset.bytes, dataset.names, dataset.model.weight.sum().item(), state]


def test_views_of_one_storage_still_share_it_in_the_worker():
    base = torch.zeros(5000)
    first, second = trip((base, base[100:]))
    second[0] = 5
    assert first[100] == 5
    assert base[100] == 0


# -- shared before, shared after -----------------------------------------------------------------


@pytest.mark.parametrize("start", ["zygote", "spawn"])
def test_shared_tensors_stay_shared_in_both_directions(start):
    def exchange(dataset: Rows, index: int) -> float:
        dataset.out[index] = index + 1
        return dataset.inside[index].item()

    inside, out = torch.zeros(2000).share_memory_(), torch.zeros(2000).share_memory_()
    batches = iter(loader(Rows(2000, exchange, inside=inside, out=out), 1, start=start))
    next(batches)
    assert out[0] == 1
    inside.fill_(9)
    got = list(batches)
    assert got[-1] == 9
    assert torch.equal(out, torch.arange(1.0, 2001))


def test_a_shared_module_stays_shared():
    def read(dataset: Rows, index: int) -> float:
        return dataset.model.weight[0, 0].item()

    model = torch.nn.Linear(3, 3).share_memory()
    batches = iter(loader(Rows(100, read, model=model), 1))
    next(batches)
    with torch.no_grad():
        model.weight.fill_(42)
    assert list(batches)[-1] == 42


def test_multiprocessings_tools_work_in_the_dataset():
    def work(dataset: Rows, index: int) -> int:
        with dataset.lock:
            dataset.total.value += index
            dataset.cells[index % 4] += 1
        dataset.queue.put(index)
        dataset.event.set()
        return index

    tools = {
        "lock": spawn.Lock(),
        "total": spawn.Value("q", 0, lock=False),
        "cells": spawn.Array("i", 4),
        "queue": spawn.SimpleQueue(),
        "event": spawn.Event(),
    }
    assert list(loader(Rows(200, work, **tools))) == list(range(200))
    assert tools["total"].value == sum(range(200))
    assert list(tools["cells"]) == [50] * 4
    assert tools["event"].is_set()
    assert sorted(tools["queue"].get() for _ in range(200)) == list(range(200))
    tools["queue"].close()


def test_a_queue_with_a_feeder_thread_works_in_the_dataset():
    def put(dataset: Rows, index: int) -> int:
        dataset.queue.put(index)
        return index

    queue = spawn.Queue()
    batches = iter(loader(Rows(6, put, queue=queue), 1, persistent_workers=True))
    assert list(batches) == list(range(6))
    assert [queue.get(timeout=10) for _ in range(6)] == list(range(6))
    queue.close()
    queue.join_thread()


@pytest.mark.filterwarnings("ignore::holdfast.RepeatedRandom")
def test_a_random_generator_in_the_dataset_goes_on_where_it_was():
    def draw(dataset: Rows, index: int) -> float:
        return torch.rand((), generator=dataset.generator).item()

    expected = torch.Generator().manual_seed(5)
    got = list(loader(Rows(5, draw, generator=torch.Generator().manual_seed(5)), 1))
    assert got == [torch.rand((), generator=expected).item() for _ in range(5)]


# -- what cannot be shipped ----------------------------------------------------------------------


class Store:
    def __init__(self, handle: Any) -> None:
        self.name, self.handle = "store", handle


def test_a_member_that_cannot_be_shipped_is_named_by_its_path():
    with pytest.raises(CannotShip, match=r"dataset\.store\.handle \(_thread\.lock\) cannot be pickled") as caught:
        iter(loader(Rows(5, summary, store=Store(threading.Lock())), start="zygote"))
    assert (caught.value.what, caught.value.path) == ("dataset", "dataset.store.handle")
    assert "cannot pickle '_thread.lock' object" in caught.value.reason
    assert isinstance(caught.value, RuntimeError)


def test_a_variable_of_a_collate_fn_that_cannot_be_shipped_is_named():
    handle = (number for number in range(3))

    def collate(samples: Any) -> Any:
        return next(handle)

    with pytest.raises(CannotShip, match=r"collate_fn \(its variable handle\) \(generator\)"):
        iter(DataLoader(range(5), collate_fn=collate, num_workers=1, start="spawn"))


def test_an_item_of_a_list_that_cannot_be_shipped_is_named():
    with open("/dev/zero", "rb") as file:
        dataset = Rows(5, summary, files=[0, {"a": 1, "b": file}])
        with pytest.raises(CannotShip, match=r"dataset\.files\[1\]\['b'\] \(_io\.BufferedReader\)"):
            iter(loader(dataset, start="zygote"))


def held(dataset: Rows, index: int) -> bool:
    return dataset.lock.acquire(blocking=False)


def test_what_cannot_be_shipped_is_taken_along_by_a_fork_with_a_warning_that_names_it():
    with pytest.warns(ForkWarning, match=r"dataset\.lock \(_thread\.lock\) cannot be pickled, so the workers"):
        assert list(loader(Rows(1, held, lock=threading.Lock()), 1)) == [True]


def test_there_is_no_such_fork_while_other_threads_run():
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        with pytest.raises(CannotShip, match=r"dataset\.lock \(_thread\.lock\)"):
            iter(loader(Rows(1, held, lock=threading.Lock()), 1))
    finally:
        over.set()
        other.join()


def test_fork_needs_no_shipping():
    assert list(loader(Rows(1, held, lock=threading.Lock()), 1, start="fork")) == [True]
