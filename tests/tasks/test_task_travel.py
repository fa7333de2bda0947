"""Arguments and results of a pool: they arrive as they were sent, belong to who has them, and cost no descriptors."""

from __future__ import annotations

import gc
import multiprocessing
import os
import tracemalloc
from pathlib import Path
from typing import Any, NamedTuple

import errands
import numpy
import pytest
import torch

from holdfast import CannotSend, Pool

BIG = 10 << 20  # bytes


@pytest.fixture
def pool():
    with Pool(2) as pool:
        yield pool
    pool.join()


class Pair(NamedTuple):
    left: Any
    right: Any


def values() -> dict[str, Any]:
    numbers = numpy.arange(24, dtype=numpy.int16).reshape(2, 3, 4)
    tensor = torch.arange(24, dtype=torch.float64).reshape(2, 3, 4)
    structured = numpy.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")])
    return {
        "array": numbers,
        "transposed": numbers.transpose(2, 0, 1),
        "every second": numbers[:, ::2],
        "of no length": numpy.zeros((0, 3)),
        "of no dimension": numpy.array(3.5),
        "structured": structured,
        "strings": numpy.array(["a", "bc"]),
        "times": numpy.array(["2024-01-01"], "datetime64[D]"),
        "tensor": tensor,
        "view": tensor[:, 1:, ::2],
        "half": tensor.to(torch.bfloat16),
        "complex": torch.tensor([1 + 2j]),
        "bool": torch.tensor([True, False]),
        "empty": torch.empty(0, 4),
        "scalar": torch.tensor(7),
        "nested": {"a": [numbers, (tensor, "text", None)], "b": Pair(numbers[0], {1: b"bytes"})},
        "bytes": b"\0\xff" * 100,
        "long bytes": os.urandom(BIG),
        "long text": "ä" * BIG,
        "bytearray": bytearray(b"abc"),
        "big array": numpy.random.default_rng(0).integers(0, 255, BIG, numpy.uint8),
        "big tensor": torch.arange(BIG // 8),
        "plain": (1, 2.5, "x", None, True, 1j, [1, {2: 3}], {4}, frozenset({5}), range(3), ...),
    }


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, numpy.ndarray):
        return type(other) is type(one) and other.dtype == one.dtype and numpy.array_equal(one, other)
    if isinstance(one, torch.Tensor):
        return type(other) is type(one) and other.dtype == one.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(alike, one, other))
    return type(one) is type(other) and one == other


def test_values_arrive_as_they_were_sent_in_both_directions(pool):
    sent = values()
    came = dict(zip(sent, pool.map(errands.same, sent.values(), 1), strict=True))
    assert [name for name in sent if not alike(sent[name], came[name])] == []


def writes(value: Any) -> Any:
    value[...] = 1  # raises where that is not allowed
    return value


def test_arrays_and_tensors_can_be_written_to_in_both_processes(pool):
    sent = [numpy.zeros(5), numpy.zeros(BIG, numpy.uint8), torch.zeros(5), torch.zeros(BIG // 4)]
    for before, after in zip(sent, pool.map(writes, sent, 1), strict=True):
        assert float(before.sum()) == 0  # a worker has a copy
        assert bool((after == 1).all())
        after[...] = 2


def test_a_view_does_not_take_all_of_its_memory_along(pool):
    array, tensor = numpy.zeros((1000, 100_000), numpy.uint8), torch.zeros(1000, 100_000, dtype=torch.uint8)
    tracemalloc.start()
    came = pool.map(errands.same, [array[3], tensor[3], array[:, 7], tensor[:, 7]], 1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 << 20
    assert came[1].untyped_storage().nbytes() < 1 << 20
    assert pool.apply(storage_of, (tensor[3],)) < 1 << 20


def storage_of(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes()


def test_what_the_parent_keeps_is_not_overwritten_and_costs_no_descriptors(pool):
    descriptors = len(os.listdir("/proc/self/fd"))
    kept = [pool.apply(filled, (number,)) for number in range(300)]
    kept += pool.map(filled, range(300, 600))
    kept += pool.imap(filled, range(600, 700), 7)
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 20  # some for each size of its memory
    for number, (array, tensor) in enumerate(kept):
        assert (array == number).all()
        assert (tensor == number).all()


def filled(number: int) -> tuple[Any, Any]:
    return numpy.full(5000, number), torch.full((5000,), number)


def test_what_a_worker_keeps_is_not_overwritten():
    with Pool(1) as pool:
        for number in range(200):
            assert pool.apply(errands.keep, (filled(number),)) == number + 1
            assert pool.apply(errands.same, (numpy.full(5000, -1),)).sum() == -5000
        kept = pool.apply(errands.kept)
    for number, (array, tensor) in enumerate(kept):
        assert (array == number).all()
        assert (tensor == number).all()
    pool.join()


def test_what_outlives_its_pool_stays(tmp_path):
    with Pool(2) as pool:
        kept = pool.map(filled, range(10))
    pool.join()
    gc.collect()
    assert all((array == number).all() for number, (array, _) in enumerate(kept))
    kept[3][0][:] = 5
    assert (kept[3][0] == 5).all()


def spoil_and_die(value: Any, flag: Path) -> float:
    before = float(value.sum())
    value[...] = 99
    errands.kill_once(flag)
    return before


@pytest.mark.parametrize("size", [10, 2000, 1 << 20])
def test_arguments_are_as_they_were_when_a_call_is_tried_again(size, tmp_path):
    """Although the first attempt has written to them."""
    with Pool(1, retries=1) as pool:
        for number, make in enumerate((numpy.ones, torch.ones)):
            value = make(size)
            assert pool.apply(spoil_and_die, (value, tmp_path / str(number))) == size
            assert float(value.sum()) == size
        assert len(pool.faults) == 2
    pool.join()


def spoil_or_fail(value: Any, flag: Path) -> float:
    before = float(value.sum())
    value[...] = 99
    if not flag.exists():
        flag.touch()
        raise OSError("not yet")
    return before


def test_arguments_are_as_they_were_when_the_same_worker_tries_again(tmp_path):
    with Pool(1, retries=1) as pool:
        pairs = [
            (numpy.ones(2000), tmp_path / "a"),
            (numpy.ones(10), tmp_path / "b"),
            (torch.ones(9999), tmp_path / "c"),
        ]
        assert pool.starmap(spoil_or_fail, pairs, 3) == [2000, 10, 9999]
    pool.join()


def test_requires_grad_travels_with_a_leaf(pool):
    leaf = torch.ones(3, requires_grad=True)
    assert pool.apply(requires, (leaf,))
    came = pool.apply(errands.same, (leaf,))
    assert came.requires_grad
    assert came.is_leaf
    parameter = pool.apply(errands.same, (torch.nn.Parameter(torch.ones(3)),))
    assert isinstance(parameter, torch.nn.Parameter)
    with pytest.raises(RuntimeError, match=r"requires_grad|requires grad"):
        pool.apply(grown, (leaf,))


def requires(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad


def grown(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * 2


def test_a_model_travels(pool):
    model = torch.nn.Sequential(torch.nn.Linear(100, 100), torch.nn.BatchNorm1d(100)).eval()
    came = pool.apply(errands.same, (model,))
    data = torch.ones(2, 100)
    assert torch.equal(came(data), model(data))


def shared_twice(size: int) -> Any:
    array, tensor = numpy.zeros(size), torch.zeros(size)
    return [array, array, tensor, tensor, tensor[1:]]


@pytest.mark.parametrize("size", [10, 100_000])
def test_what_was_one_thing_in_a_result_is_one_thing_still(size, pool):
    array, again, tensor, once_more, part = pool.apply(shared_twice, (size,))
    assert array is again
    array[0] = 1
    tensor[1] = 2
    assert again[0] == 1
    assert once_more[1] == 2
    assert tensor is once_more
    assert part[0] == 2


def test_results_of_two_calls_are_two_things(pool):
    same = numpy.zeros(50_000)
    one, other = pool.map(errands.same, [same, same], 1)
    one[0] = 1
    assert other[0] == 0
    assert same[0] == 0


def test_what_cannot_be_sent_back_is_named_and_others_arrive(pool):
    results = pool.imap(maybe_a_generator, range(3), 3)
    assert next(results) == 0
    with pytest.raises(CannotSend, match="result"):
        next(results)
    assert next(results) == 2


def maybe_a_generator(number: int) -> Any:
    return {"deep": (each for each in "abc")} if number == 1 else number


@pytest.mark.slow
def test_memory_is_used_again():
    """A thousand results of 10 MB that are dropped do not take 10 GB."""
    with Pool(2) as pool:
        for _ in pool.imap(errands.same, (numpy.zeros(BIG, numpy.uint8) for _ in range(1000))):
            pass
        files = [os.stat(f"/proc/self/fd/{fd}") for fd in memory_files()]
        held = sum({file.st_ino: file.st_blocks * 512 for file in files}.values())  # one may be mapped in parts
    pool.join()
    assert BIG < held < 50 * BIG


def memory_files() -> list[str]:
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            if "memfd" in os.readlink(f"/proc/self/fd/{fd}"):
                found.append(fd)
        except FileNotFoundError:
            pass
    return found


def append(names: Any, number: int) -> None:
    names.append(number)


def test_what_a_manager_holds_can_be_used_by_tasks(pool):
    with multiprocessing.get_context("fork").Manager() as manager:
        names = manager.list()
        pool.starmap(append, [(names, number) for number in range(4)])
        assert sorted(names) == [0, 1, 2, 3]
