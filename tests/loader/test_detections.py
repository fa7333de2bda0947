"""What goes wrong without an error, and is said: F38, F40, F43, F46. Each with a near miss that is not mentioned."""

from __future__ import annotations

import functools
import itertools
import os
import random
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from small_datasets import Squares, Stream
from torch.utils.data import IterableDataset, SubsetRandomSampler

from holdfast import DataLoader, EmptyDataset, RepeatedRandom, SharedHandle, UnshardedStream, per_worker
from holdfast._worker.noticing import ITEMS, fingerprint


def items(loader: Any) -> list[Any]:
    return [item for batch in loader for item in batch.tolist()]


# -- F46: nothing to load ------------------------------------------------------------------------


class Files(Squares):
    def __init__(self, root: Path) -> None:
        self.root, self.length = root, len(os.listdir(root))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_empty_data_set_is_an_error_that_says_why(tmp_path, workers):
    loader = DataLoader(Files(tmp_path), num_workers=workers)
    with pytest.raises(EmptyDataset, match=f"Files.*is empty.*\n.*its folder {tmp_path} is empty"):
        iter(loader)
    assert issubclass(EmptyDataset, ValueError)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_an_empty_data_set_is_an_epoch_of_no_batches_where_that_is_allowed(workers, shuffle):
    loader = DataLoader(Squares(0), num_workers=workers, shuffle=shuffle, allow_empty=True)
    assert (list(loader), list(loader), len(loader), loader.allow_empty) == ([], [], 0, True)


@pytest.mark.parametrize("choice", [{"sampler": SubsetRandomSampler([])}, {"batch_sampler": []}], ids=" ".join)
@pytest.mark.parametrize("length", [0, 10])
def test_a_sampler_that_chooses_nothing_is_its_own_affair(choice, length):
    assert list(DataLoader(Squares(length), **choice)) == []


class Few(IterableDataset):
    """``per_seat[i]`` items from worker i."""

    def __init__(self, *per_seat: int) -> None:
        self.per_seat = per_seat

    def __iter__(self) -> Iterator[int]:
        info = torch.utils.data.get_worker_info()
        seat = info.id if info else 0
        return iter([100 * seat + i for i in range(self.per_seat[seat])])


@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (2, False), (2, True)])
def test_a_stream_without_an_item_is_an_error_in_every_epoch(workers, persistent):
    loader = DataLoader(Few(0, 0), num_workers=workers, persistent_workers=persistent)
    for _ in range(2):
        with pytest.raises(EmptyDataset, match="Few"):
            list(loader)


@pytest.mark.parametrize(
    ("dataset", "options"),
    [
        (Few(0, 1), {}),
        (Few(0, 0), {"allow_empty": True}),
        (Few(3, 3), {"batch_size": 4, "drop_last": True}),
    ],
    ids=["one worker has an item", "allowed", "too few for a batch"],
)
def test_a_stream_that_has_items_or_need_not_have_any_ends_as_usual(dataset, options):
    expected = [100] if dataset.per_seat == (0, 1) else []
    assert items(DataLoader(dataset, num_workers=2, **options)) == expected


class Broken(IterableDataset):
    def __iter__(self) -> Iterator[int]:
        return map(int, ["x", "y"])


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stream_of_which_everything_was_skipped_is_not_called_empty(workers):
    loader = DataLoader(Broken(), num_workers=workers, on_error="skip")
    assert list(loader) == []
    assert len(loader.faults) == 2


def test_an_iterator_that_was_closed_before_its_first_batch_just_ends():
    iterator = iter(DataLoader(Few(1, 1), num_workers=2))
    iterator._shutdown_workers()
    assert list(iterator) == []


# -- F40: a stream that nobody divides -------------------------------------------------------------


class Items(IterableDataset):
    """The whole stream in every worker, as most people write it first."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)


@pytest.mark.parametrize("workers", ["process", "thread"])
@pytest.mark.parametrize("batch_size", [1, 4, 100, None])
def test_equal_items_of_two_workers_are_said_once(workers, batch_size):
    loader = DataLoader(Items(range(24)), batch_size=batch_size, num_workers=2, workers=workers)
    with pytest.warns(UnshardedStream, match='workers 0 and 1 of Items .*shard="auto".*HF403') as told:
        first = list(loader)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert len(torch.cat([batch.reshape(-1) for batch in map(torch.as_tensor, first)])) == 48
    list(loader)  # warnings are errors here: nothing is said a second time


def test_tensors_and_dicts_are_compared_too():
    samples = [{"image": torch.full((3, 64, 64), float(i)), "name": f"{i}.jpg"} for i in range(4)]
    with pytest.warns(UnshardedStream):
        list(DataLoader(Items(samples), num_workers=3))


@pytest.mark.parametrize(
    "dataset",
    [
        Stream(40),
        Items([7] * 20),
        Items([7]),
        Items([1, 2, 3]),
    ],
    ids=["divided", "constant", "one item", "one worker"],
)
def test_streams_that_may_be_as_they_should_are_not_mentioned(dataset):
    workers = 1 if isinstance(dataset, Items) and len(dataset.values) == 3 else 2
    list(DataLoader(dataset, batch_size=4, num_workers=workers))


class SameHeader(IterableDataset):
    def __iter__(self) -> Iterator[int]:
        seat = torch.utils.data.get_worker_info().id
        return iter([*range(ITEMS - 1), 1000 + seat])


def test_one_item_of_the_first_that_differs_is_enough():
    assert len(items(DataLoader(SameHeader(), num_workers=2))) == 2 * ITEMS


def test_items_that_cannot_be_compared_are_not_mentioned():
    list(DataLoader(Items([1, 2, lambda: 3]), batch_size=None, num_workers=2, collate_fn=lambda sample: 0))


class DiesOnce(Items):
    """Worker 1 dies at the first item of its first life."""

    def __init__(self, mark: Path) -> None:
        super().__init__(range(24))
        self.mark = mark

    def __iter__(self) -> Iterator[Any]:
        if torch.utils.data.get_worker_info().id == 1 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__iter__()


def test_what_a_worker_could_not_tell_because_it_died_is_found_in_the_next_epoch(tmp_path):
    loader = DataLoader(DiesOnce(tmp_path / "mark"), batch_size=4, num_workers=2)
    assert len(items(loader)) == 48
    assert loader.restarts == 1
    with pytest.warns(UnshardedStream):
        list(loader)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (torch.arange(4), torch.arange(4), True),
        (torch.arange(4), torch.arange(4).float(), False),
        (torch.zeros(1 << 20), torch.zeros(1 << 20), True),
        (numpy.arange(6).reshape(2, 3), numpy.arange(6).reshape(3, 2), False),
        (torch.arange(6).reshape(2, 3).T, torch.arange(6).reshape(2, 3).T.contiguous(), True),
        ({"a": [1, "b"]}, {"a": [1, "b"]}, True),
        (b"x" * 200_000, b"x" * 200_000, True),
        (b"x" * 100, b"y" * 100, False),
    ],
    ids=str,
)
def test_fingerprints_are_of_values(one, other, equal):
    assert fingerprint(one) is not None
    assert (fingerprint(one) == fingerprint(other)) == equal


# -- F38: generators that repeat themselves --------------------------------------------------------


class Crops(Squares):
    def __init__(self, make: Any) -> None:
        super().__init__(8)
        self.rng = make()
        self.order = sorted(range(8), key=lambda _: draw(self.rng))  # once, here: that hurts nobody

    def __getitem__(self, index: int) -> float:
        return draw(self.rng)


class OnlyInInit(Crops):
    def __getitem__(self, index: int) -> float:
        return float(self.order[index])


class Seeded(Crops):
    def __getitem__(self, index: int) -> float:
        self.rng = random.Random(index)
        return draw(self.rng)


def draw(rng: Any) -> float:
    if isinstance(rng, torch.Generator):
        return float(torch.rand((), generator=rng))
    return float(rng.random())


KINDS = {
    "numpy": functools.partial(numpy.random.default_rng, 0),
    "random": functools.partial(random.Random, 0),
    "legacy": functools.partial(numpy.random.RandomState, 0),
    "torch": lambda: torch.Generator().manual_seed(0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_generator_that_is_drawn_from_in_workers_is_named_once(kind, workers):
    loader = DataLoader(Crops(KINDS[kind]), batch_size=4, num_workers=workers)
    with pytest.warns(RepeatedRandom, match=r"dataset\.rng .*again in every epoch.*HF404") as told:
        first = items(loader)
    assert len(told) == 1
    assert items(loader) == first  # they do repeat
    assert workers == 1 or first[:4] == first[4:]


def test_persistent_workers_repeat_each_other_but_not_the_last_epoch():
    loader = DataLoader(Crops(KINDS["numpy"]), batch_size=4, num_workers=2, persistent_workers=True)
    with pytest.warns(RepeatedRandom, match=r"dataset\.rng") as told:
        first = items(loader)
    assert "every epoch" not in str(told[0].message)
    assert items(loader) != first


def reseed(seat: int) -> None:
    rng, seed = torch.utils.data.get_worker_info().dataset.rng, torch.initial_seed()
    if isinstance(rng, random.Random):
        rng.seed(seed)
    else:
        rng.bit_generator.state = numpy.random.default_rng(seed).bit_generator.state


@pytest.mark.parametrize(
    ("dataset", "options"),
    [
        (OnlyInInit(KINDS["numpy"]), {}),
        (Seeded(KINDS["random"]), {}),
        (Crops(KINDS["random"]), {"worker_init_fn": reseed}),
        (Crops(KINDS["numpy"]), {"worker_init_fn": reseed}),
        (Crops(KINDS["numpy"]), {"workers": "thread"}),
        (Crops(KINDS["numpy"]), {"num_workers": 0}),
        (Crops(KINDS["numpy"]), {"num_workers": 1, "persistent_workers": True}),
    ],
    ids=["in __init__", "made at use", "seeded", "state set", "threads", "no workers", "one worker that goes on"],
)
def test_generators_that_do_not_repeat_are_not_mentioned(dataset, options):
    items(DataLoader(dataset, batch_size=4, **({"num_workers": 2} | options)))


class Shuffled(IterableDataset):
    """The workers have to draw the same order, to divide it."""

    def __init__(self) -> None:
        self.rng = random.Random(3)

    def __iter__(self) -> Iterator[int]:
        info = torch.utils.data.get_worker_info()
        order = self.rng.sample(range(32), 32)
        return itertools.islice(iter(order), info.id, None, info.num_workers)


def test_a_stream_may_draw_the_same_order_in_all_workers_if_epochs_differ():
    assert sorted(items(DataLoader(Shuffled(), num_workers=2, persistent_workers=True))) == list(range(32))
    with pytest.warns(RepeatedRandom, match="again in every epoch"):
        items(DataLoader(Shuffled(), num_workers=2))


# -- F43: handles that workers would share ----------------------------------------------------------


class Reads(Squares):
    def __init__(self, file: Any) -> None:
        super().__init__(4)
        self.file = file


@pytest.fixture
def path(tmp_path) -> Path:
    path = tmp_path / "records.bin"
    path.write_bytes(bytes(100))
    return path


def test_a_handle_is_named_before_workers_are_forked(path):
    with open(path, "rb") as file:
        loader = DataLoader(Reads(file), num_workers=2, start="fork")
        with pytest.warns(SharedHandle, match=rf"dataset\.file .*holdfast\.per_worker\(open, '{path}'.*HF405") as told:
            list(loader)
        assert len(told) == 1
        list(loader)


def test_it_is_named_when_forking_is_the_way_out_as_well(path):
    with open(path, "rb") as file, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        list(DataLoader(Reads(file), num_workers=1))
    assert [type(warning.message).__name__ for warning in told] == ["ForkWarning", "SharedHandle"]


def test_closed_and_own_handles_are_not_mentioned(path):
    with open(path, "rb") as file:
        pass
    list(DataLoader(Reads(file), num_workers=1, start="fork"))
    list(DataLoader(Reads(per_worker(open, path, "rb")), num_workers=1, start="fork"))
    with open(path, "rb") as file:
        list(DataLoader(Reads(file), num_workers=1, workers="thread"))
        list(DataLoader(Reads(file)))
