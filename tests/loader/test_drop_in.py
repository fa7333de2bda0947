"""The drop-in contract: what programs and frameworks do to torch's loader can be done to this one."""

from __future__ import annotations

import copy
import gc
import inspect
import os
import pickle
import re
from collections.abc import Iterator
from typing import Any

import numpy
import psutil
import pytest
import torch
import torch.utils.data
from small_datasets import Squares, Stream
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler, WeightedRandomSampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

from holdfast import DataLoader

Stock = torch.utils.data.DataLoader
OURS = {"start": "spawn", "workers": "process", "max_restarts": 5, "max_shared_memory": 1 << 24}


def collate(samples: list[int]) -> list[int]:
    return samples


def init(seat: int) -> None: ...


# -- the signature -------------------------------------------------------------------------------


def test_torchs_arguments_come_first_in_torchs_order_with_torchs_defaults():
    theirs = [(p.name, p.kind, p.default) for p in inspect.signature(Stock.__init__).parameters.values()]
    ours = [(p.name, p.kind, p.default) for p in inspect.signature(DataLoader.__init__).parameters.values()]
    assert ours[: len(theirs)] == theirs
    assert all(kind is inspect.Parameter.KEYWORD_ONLY for _, kind, _ in ours[len(theirs) :])


def test_every_argument_is_kept_as_an_attribute():
    generator, sampler = torch.Generator(), SequentialSampler(Squares())
    given: dict[str, Any] = {
        "dataset": Squares(),
        "batch_size": 3,
        "sampler": sampler,
        "num_workers": 2,
        "collate_fn": collate,
        "pin_memory": False,
        "drop_last": True,
        "timeout": 30,
        "worker_init_fn": init,
        "generator": generator,
        "prefetch_factor": 3,
        "persistent_workers": True,
        "pin_memory_device": "",
        "in_order": False,
        **OURS,
    }
    loader = DataLoader(**given)
    assert {name: getattr(loader, name) for name in given} == given
    assert all(getattr(loader, name) is value for name, value in given.items())


def test_it_is_torchs_loader_and_its_iterator_torchs_iterator(squares):
    for workers in (0, 1):
        loader = DataLoader(squares, num_workers=workers)
        assert isinstance(loader, Stock)
        assert isinstance(iter(loader), _BaseDataLoaderIter)


# -- rebuilding ----------------------------------------------------------------------------------


def rebuilt(loader: DataLoader, **changes: Any) -> DataLoader:
    """As frameworks do it: the arguments of the signature that are found among the attributes."""
    names = [name for name in inspect.signature(type(loader).__init__).parameters if name != "self"]
    arguments = {name: vars(loader)[name] for name in names if name in vars(loader)}
    if arguments["batch_sampler"] is not None:
        arguments.update(batch_size=1, sampler=None, drop_last=False)
        arguments.pop("shuffle", None)
    return type(loader)(**(arguments | changes))


def options(loader: DataLoader) -> dict[str, Any]:
    return {name: value for name, value in vars(loader).items() if not name.startswith("_")}


def test_a_loader_made_again_from_its_attributes_is_equal(squares):
    loader = DataLoader(squares, 4, True, num_workers=2, collate_fn=collate, worker_init_fn=init, timeout=60, **OURS)
    again = rebuilt(loader)
    assert again.batch_sampler is loader.batch_sampler
    unread = {"batch_size", "sampler"}  # torch leaves these unset beside a batch_sampler
    assert {name: options(again)[name] for name in options(again).keys() - unread} == {
        name: options(loader)[name] for name in options(loader).keys() - unread
    }


def test_a_loader_is_made_again_with_another_sampler(squares):
    loader = DataLoader(squares, batch_size=4, collate_fn=collate, max_restarts=5)
    again = rebuilt(loader, batch_sampler=BatchSampler(range(9, -1, -1), 5, False))
    assert again.max_restarts == 5
    assert list(again) == [[81, 64, 49, 36, 25], [16, 9, 4, 1, 0]]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_loader_can_be_copied_before_iteration(copied, workers, squares):
    loader = DataLoader(squares, batch_size=4, num_workers=workers, collate_fn=collate, max_restarts=5)
    again = copied(loader)
    assert again.max_restarts == 5
    assert list(again) == list(loader)


def test_a_loader_can_be_pickled_after_iteration(squares):
    loader = DataLoader(squares, batch_size=4, num_workers=1, collate_fn=collate)
    expected = list(loader)
    assert list(pickle.loads(pickle.dumps(loader))) == expected


# -- samplers ------------------------------------------------------------------------------------


class FilledAgain:
    """A batch sampler that gives one and the same list, array or tensor, with other numbers in it."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def __iter__(self) -> Iterator[Any]:
        for first in range(0, 12, 3):
            for place in range(3):
                self.batch[place] = first + place
            yield self.batch
            for place in range(3):
                self.batch[place] = 0


@pytest.mark.parametrize("how", [{}, {"num_workers": 2}, {"num_workers": 2, "workers": "thread"}], ids=str)
@pytest.mark.parametrize("batch", [[0] * 3, numpy.zeros(3, int), torch.zeros(3, dtype=torch.int64)], ids=type)
def test_a_batch_that_is_filled_again_is_loaded_as_it_was_given(batch, how):
    loader = DataLoader(Squares(12), batch_sampler=FilledAgain(batch), **how)
    assert torch.stack(list(loader)).tolist() == [[n * n for n in range(first, first + 3)] for first in range(0, 12, 3)]


class Generators:
    """A batch sampler whose batches can be gone through once."""

    def __iter__(self) -> Iterator[Any]:
        return ((first + place for place in range(3)) for first in range(0, 12, 3))


@pytest.mark.parametrize("how", [{}, {"num_workers": 2}, {"num_workers": 2, "workers": "thread"}], ids=str)
def test_a_batch_may_be_an_iterator(how):
    loader = DataLoader(Squares(12), batch_sampler=Generators(), **how)
    assert torch.stack(list(loader)).tolist() == [[n * n for n in range(first, first + 3)] for first in range(0, 12, 3)]
    assert not loader.faults


# -- attributes ----------------------------------------------------------------------------------


def test_attributes_are_read_when_the_iteration_begins(squares):
    loader = DataLoader(squares, batch_size=None, num_workers=1)

    def mark(seat: int) -> None:
        os.environ["HOLDFAST_TEST_SEAT"] = str(seat)

    class Marked(Squares):
        def __getitem__(self, index: int) -> str | None:
            return os.environ.get("HOLDFAST_TEST_SEAT")

    loader.worker_init_fn = mark
    loader.num_workers = 2
    loader.collate_fn = lambda sample: f"seat {sample}"
    vars(loader)["dataset"] = Marked()
    assert set(loader) == {"seat 0", "seat 1"}


def test_arguments_that_torch_fixes_stay_fixed(squares):
    loader = DataLoader(squares)
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
            setattr(loader, name, None)


def test_the_users_objects_are_never_wrapped(squares):
    sampler = RandomSampler(squares)
    batch_sampler = BatchSampler(sampler, 2, False)
    loader = DataLoader(squares, batch_sampler=batch_sampler, collate_fn=collate, num_workers=1)
    list(loader)
    assert loader.dataset is squares
    assert loader.batch_sampler is batch_sampler
    assert loader.collate_fn is collate
    assert DataLoader(squares, sampler=sampler).sampler is sampler
    assert DataLoader(squares).collate_fn is torch.utils.data.default_collate
    assert DataLoader(squares, batch_size=None).collate_fn is torch.utils.data.default_convert


def test_multiprocessing_context_is_kept_and_checked_as_torch_does(squares):
    loader = DataLoader(squares, num_workers=1, multiprocessing_context="spawn")
    assert loader.multiprocessing_context.get_start_method() == "spawn"
    for make in (Stock, DataLoader):
        with pytest.raises(ValueError, match="multiprocessing_context option should specify a valid start method"):
            make(squares, num_workers=1, multiprocessing_context="teleport")
        with pytest.raises(ValueError, match="multiprocessing_context can only be used with multi-process loading"):
            make(squares, multiprocessing_context="fork")


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_every_start_method_of_multiprocessing_is_honoured(squares, start):
    loader = DataLoader(squares, batch_size=4, num_workers=1, multiprocessing_context=start)
    assert torch.cat(list(loader)).tolist() == [i * i for i in range(10)]


# -- persistent workers --------------------------------------------------------------------------


class Pids(Squares):
    def __getitem__(self, index: int) -> int:
        return os.getpid()


def test_persistent_workers_live_in_iterator_from_epoch_to_epoch():
    loader = DataLoader(Pids(), num_workers=2, persistent_workers=True)
    first = iter(loader)
    assert loader._iterator is first
    pids = {pid.item() for pid in first}
    assert len(pids) == 2
    assert {pid.item() for pid in loader} == pids
    assert iter(loader) is first


def test_setting_iterator_to_none_ends_the_workers_while_someone_holds_it():
    loader = DataLoader(Pids(), num_workers=2, persistent_workers=True)
    held = iter(loader)
    next(held)
    workers = list(held._workers)
    assert all(worker.is_alive() for worker in workers)
    loader._iterator = None
    assert not any(worker.is_alive() for worker in workers)
    assert {pid.item() for pid in loader}.isdisjoint(worker.pid for worker in workers)
    loader._iterator = None


def test_persistent_workers_outlive_a_generator_that_passes_batches_on_and_is_left():
    """``yield from`` calls the `close` of its iterator, if there is one: torch's has none."""
    loader = DataLoader(Pids(), num_workers=2, persistent_workers=True)

    def passed_on():
        yield from loader

    next(passed_on())
    first = {worker.pid for worker in loader._iterator._workers}
    next(passed_on())
    assert {worker.pid for worker in loader._iterator._workers} == first
    assert all(worker.is_alive() for worker in loader._iterator._workers)
    loader._iterator = None


def test_workers_that_are_not_persistent_end_with_the_epoch():
    loader = DataLoader(Pids(), num_workers=2)
    batches = iter(loader)
    list(batches)
    assert not any(worker.is_alive() for worker in batches._workers)
    assert loader._iterator is None
    with pytest.raises(StopIteration):
        next(batches)


def test_the_workers_end_when_the_iterator_is_dropped():
    batches = iter(DataLoader(Pids(1000), num_workers=2))
    next(batches)
    workers = list(batches._workers)
    del batches
    assert not any(worker.is_alive() for worker in workers)


@pytest.mark.parametrize("start", ["zygote", "standby"])
def test_the_workers_end_when_an_iterator_in_a_cycle_is_collected(start):
    batches = iter(DataLoader(Pids(1000), num_workers=1, start=start))
    pid = next(batches).item()
    batches.myself = batches
    assert psutil.pid_exists(pid)
    del batches
    gc.collect()
    assert not psutil.pid_exists(pid)


def test_a_persistent_epoch_that_was_left_early_does_not_reach_the_next():
    loader = DataLoader(Squares(100), num_workers=2, persistent_workers=True, batch_size=5)
    for _ in range(3):
        for number, batch in enumerate(loader):
            if number == 3:
                break
        assert batch.tolist() == [i * i for i in range(15, 20)]
    assert torch.cat(list(loader)).tolist() == [i * i for i in range(100)]
    loader._iterator = None


# -- errors of arguments -------------------------------------------------------------------------

WRONG: list[dict[str, Any]] = [
    {"num_workers": -1},
    {"timeout": -1},
    {"prefetch_factor": 2},
    {"prefetch_factor": -1, "num_workers": 1},
    {"persistent_workers": True},
    {"sampler": range(3), "shuffle": True},
    {"batch_sampler": [[1]], "batch_size": 3},
    {"batch_sampler": [[1]], "shuffle": True},
    {"batch_sampler": [[1]], "sampler": range(3)},
    {"batch_sampler": [[1]], "drop_last": True},
    {"batch_size": None, "drop_last": True},
    {"batch_size": 0},
    {"batch_size": -3},
    {"batch_size": "many"},
    {"drop_last": 1},
    {"dataset": Stream(), "shuffle": True},
    {"dataset": Stream(), "sampler": range(3)},
    {"dataset": Stream(), "batch_sampler": [[1]]},
    {"dataset": Squares(0), "shuffle": True},
    {"dataset": iter(range(3))},
    {"collate": collate},
    {},
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: re.sub(" at 0x[0-9a-f]+", "", str(wrong)))
def test_wrong_arguments_are_refused_in_torchs_words(wrong):
    arguments = {"dataset": Squares()} | wrong if wrong else {}

    def refusal(make: Any) -> tuple[type, str] | None:
        try:
            make(**arguments)
        except Exception as error:
            return type(error), str(error)
        return None

    assert refusal(DataLoader) == refusal(Stock)


def test_iteration_with_wrong_options_fails_as_torchs_does(squares):
    for make in (Stock, DataLoader):
        with pytest.raises((AssertionError, ValueError)):
            iter(make(squares, timeout=3))


@pytest.mark.parametrize(
    "wrong",
    [{"start": "teleport"}, {"workers": "gpu"}, {"max_restarts": -1}, {"max_shared_memory": 0}],
    ids=str,
)
def test_wrong_arguments_of_ours_are_refused_with_value_and_choices(squares, wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name} should be .*{name}={value!r}"):
        DataLoader(squares, num_workers=1, **wrong)


# -- lengths and batching ------------------------------------------------------------------------

BATCHINGS: list[dict[str, Any]] = [
    {},
    {"batch_size": 4},
    {"batch_size": 4, "drop_last": True},
    {"batch_size": None},
    {"batch_size": 100},
    {"batch_sampler": [[3, 1], [4], [1, 5, 9]]},
    {"sampler": [3, 1, 4, 1, 5], "batch_size": 2},
    {"sampler": [3, 1, 4, 1, 5], "batch_size": None},
    {"batch_size": 4, "prefetch_factor": 1},
    {"batch_size": 1, "prefetch_factor": 50},
    {"batch_size": 3, "prefetch_factor": 0},
]


def lists(loader: Any) -> list[Any]:
    return [torch.as_tensor(batch).tolist() for batch in loader]


@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("batching", BATCHINGS, ids=str)
def test_batches_and_length_are_torchs(squares, batching, workers):
    batching = {name: value for name, value in batching.items() if workers or name != "prefetch_factor"}
    stock = {name: value for name, value in batching.items() if name != "prefetch_factor"}
    loader, theirs = DataLoader(squares, num_workers=workers, **batching), Stock(squares, **stock)
    assert len(loader) == len(theirs)
    assert lists(loader) == lists(theirs)


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("batching", BATCHINGS[1:4], ids=str)
def test_streams_are_torchs(batching, workers):
    assert lists(DataLoader(Stream(23), num_workers=workers, **batching)) == lists(
        Stock(Stream(23), num_workers=workers, **batching)
    )


def test_a_stream_that_ends_early_in_one_worker_is_a_normal_end():
    class Uneven(torch.utils.data.IterableDataset):
        def __iter__(self):
            seat = torch.utils.data.get_worker_info().id
            return iter([f"{seat}:{number}" for number in range([0, 7, 2][seat])])

    loader = DataLoader(Uneven(), batch_size=None, num_workers=3, persistent_workers=True)
    for _ in range(2):
        got = list(loader)
        assert got == ["1:0", "2:0", "1:1", "2:1", *(f"1:{number}" for number in range(2, 7))]
    assert loader.restarts == 0
    loader._iterator = None


def test_an_iterable_longer_than_its_length_is_warned_of_as_torch_does():
    class Liar(Stream):
        def __len__(self) -> int:
            return 3

    for workers in (0, 2):
        loader = DataLoader(Liar(), batch_size=None, num_workers=workers)
        assert len(loader) == 3
        with pytest.warns(UserWarning, match="Length of IterableDataset .* was reported to be 3"):
            assert len(list(loader)) == 10


def test_getitems_is_used_when_there_is_one():
    class Whole(Squares):
        def __getitems__(self, indices: list[int]) -> list[int]:
            return [index + 1000 for index in indices]

    for workers in (0, 1):
        batches = DataLoader(Whole(), batch_size=4, num_workers=workers, collate_fn=collate)
        assert list(batches) == [[1000, 1001, 1002, 1003], [1004, 1005, 1006, 1007], [1008, 1009]]


def test_samplers_of_any_key_work():
    class Words(torch.utils.data.Dataset):
        def __getitem__(self, key: Any) -> Any:
            return key

    keys = ["a", ["b", 2], None, 3.5, frozenset([1])]
    for workers in (0, 2):
        assert list(DataLoader(Words(), sampler=keys, batch_size=None, num_workers=workers)) == keys


def test_a_weighted_sampler_gives_the_same_order_as_with_torch(squares):
    def order(make: Any, **options: Any) -> list[int]:
        generator = torch.Generator().manual_seed(3)
        sampler = WeightedRandomSampler(torch.arange(1.0, 11), 50, generator=generator)
        return [batch.item() for batch in make(squares, sampler=sampler, **options)]

    assert order(DataLoader, num_workers=2) == order(Stock)


@pytest.mark.skipif(torch.accelerator.is_available(), reason="asks what happens where there is nothing to pin for")
@pytest.mark.parametrize("workers", [0, 1])
def test_pinning_without_an_accelerator_is_warned_of_and_harmless(squares, workers):
    for make in (Stock, DataLoader):
        with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator is found"):
            assert lists(make(squares, batch_size=5, pin_memory=True, num_workers=workers)) == [
                [0, 1, 4, 9, 16],
                [25, 36, 49, 64, 81],
            ]


# -- errors during iteration ---------------------------------------------------------------------


class Bad(Squares):
    """Samples 2 and 5 cannot be loaded."""

    def __getitem__(self, index: int) -> int:
        if index in (2, 5):
            raise KeyError(index)
        return index


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_errors_come_from_next_and_the_iteration_goes_on(workers):
    def outcomes(make: Any) -> list[Any]:
        batches, got = iter(make(Bad(), batch_size=2, num_workers=workers)), []
        while True:
            try:
                got.append(next(batches).tolist())
            except StopIteration:
                return got
            except KeyError:
                got.append(KeyError)

    assert outcomes(DataLoader) == [[0, 1], KeyError, KeyError, [6, 7], [8, 9]]
    assert outcomes(DataLoader) == outcomes(Stock)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_of_the_sampler_comes_after_the_batches_before_it(squares, workers):
    def faulty():
        yield from ([0, 1], [2, 3])
        raise ValueError("no more of these")

    batches = iter(DataLoader(squares, batch_sampler=Remade(faulty), num_workers=workers))
    assert [next(batches).tolist() for _ in range(2)] == [[0, 1], [4, 9]]
    with pytest.raises(ValueError, match="no more of these"):
        next(batches)


class Remade:
    def __init__(self, make: Any) -> None:
        self.make = make

    def __iter__(self) -> Any:
        return self.make()


@pytest.mark.parametrize("workers", [0, 1])
def test_stopiteration_of_a_dataset_is_an_error_and_no_end(workers):
    class Stops(Squares):
        def __getitem__(self, index: int) -> int:
            if index == 3:
                raise StopIteration
            return index

    batches = iter(DataLoader(Stops(), num_workers=workers))
    assert [next(batches).item() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(RuntimeError, match=r"dataset\[3\] raised StopIteration"):
        next(batches)
    assert next(batches).item() == 4


def test_an_error_of_worker_init_fn_comes_from_next():
    def refuse(seat: int) -> None:
        raise PermissionError(13, "no access", "/data")

    batches = iter(DataLoader(Squares(), num_workers=2, worker_init_fn=refuse))
    with pytest.raises(PermissionError) as caught:
        next(batches)
    assert caught.value.filename == "/data"
    assert "before its first batch" in "".join(caught.value.__notes__)


def test_unequal_samples_are_refused_in_torchs_words():
    ragged = [torch.zeros(3), torch.zeros(4)]
    for workers in (0, 1):
        with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
            next(iter(DataLoader(ragged, batch_size=2, num_workers=workers)))
    large = [torch.zeros(3000), torch.zeros(4000)]
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        next(iter(DataLoader(large, batch_size=2, num_workers=1)))
