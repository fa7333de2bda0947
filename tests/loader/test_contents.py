"""What comes out is what torch's loader gives, for every structure of a sample."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import numpy
import pytest
import torch
import torch.utils.data
from small_datasets import Squares, plain
from torch.utils.data.datapipes.iter import IterableWrapper
from torch.utils.data.datapipes.map import SequenceWrapper

import holdfast
from holdfast import DataLoader

Stock = torch.utils.data.DataLoader


class Point(NamedTuple):
    x: Any
    y: Any


class Bag(dict):
    pass


SAMPLES = {
    "a tensor": lambda i: torch.full((3, 4), float(i)),
    "a large tensor": lambda i: torch.full((30, 40), i),
    "a scalar tensor": lambda i: torch.tensor(i),
    "a half": lambda i: torch.full((3000,), i, dtype=torch.bfloat16),
    "a view": lambda i: torch.arange(4000.0).reshape(40, 100).t() + i,
    "an int": lambda i: i,
    "a large int": lambda i: 2**40 + i,
    "a bool": lambda i: i % 2 == 0,
    "a float": lambda i: i / 3,
    "a string": lambda i: f"name {i}",
    "bytes": lambda i: bytes([i]) * 5,
    "an array": lambda i: numpy.full((3, 4), i, dtype=numpy.float32),
    "a large array": lambda i: numpy.full((50, 40), i, dtype=numpy.int16),
    "a scalar of numpy": lambda i: numpy.float32(i / 3),
    "an array without dimensions": lambda i: numpy.array(i),
    "a tuple": lambda i: (torch.ones(3) * i, i),
    "a tuple of all": lambda i: (torch.ones(3) * i, i, i / 2, f"{i}", numpy.arange(i, i + 3)),
    "a list": lambda i: [torch.ones(1000) * i, i],
    "a tuple of one": lambda i: (i,),
    "a namedtuple": lambda i: Point(torch.ones(3) * i, Point(i, f"{i}")),
    "a dict": lambda i: {"image": torch.ones(30, 40) * i, "label": i, "path": f"/{i}"},
    "a dict of other keys": lambda i: {1: i, ("a", 2): i / 2, None: f"{i}"},
    "nested": lambda i: {"a": [(i, {"b": torch.ones(2) * i})], "c": Point([i], {"d": f"{i}"})},
    "a kind of dict": lambda i: Bag(a=i),
    "an ordered dict": lambda i: collections.OrderedDict(z=i, a=f"{i}"),
    "mixed types of tensor": lambda i: torch.ones(3, dtype=[torch.int32, torch.float32][i % 2]) * i,
    "mixed types of large tensor": lambda i: torch.ones(3000, dtype=[torch.int16, torch.float64][i % 2]) * i,
    "an int, then a float": lambda i: i if i % 2 == 0 else i + 0.5,
    "a float, then an int": lambda i: i if i % 2 else i + 0.5,
    "a bool, then an int": lambda i: i if i % 2 else True,
    "an int, then a tensor": lambda i: i if i % 3 == 0 else torch.tensor(i + 0.5),
    "a float, then a scalar of numpy": lambda i: i / 2 if i % 2 == 0 else numpy.int32(i),
    "tuples of int, then float": lambda i: (i if i % 2 == 0 else i + 0.5, 1),
    "empty tensors": lambda i: torch.empty(0, 3),
    "empty tuples": lambda i: (),
    "a complex tensor": lambda i: torch.ones(600, dtype=torch.complex64) * i,
    "a parameter": lambda i: torch.nn.Parameter(torch.ones(3) * i, requires_grad=False),
}
REFUSED = {
    "None": lambda i: None,
    "an object": lambda i: dataclasses.make_dataclass("Sample", ["x"])(i),
    "tuples of unequal length": lambda i: tuple(range(i)),
    "dicts of unequal keys": lambda i: {str(i): 1},
    "an array of objects": lambda i: numpy.array([None, i], dtype=object),
    "tensors of unequal size": lambda i: torch.zeros(i + 1),
    "a tensor, then a number": lambda i: torch.zeros(3) if i % 2 == 0 else 3,
    "a sparse tensor": lambda i: torch.eye(3).to_sparse(),
    "a huge int": lambda i: 2**70,
    "a text array": lambda i: numpy.array(["a"]),
}


class Made(Squares):
    def __init__(self, make: Any, length: int = 7) -> None:
        super().__init__(length)
        self.make = make

    def __getitem__(self, index: int) -> Any:
        return self.make(index)


@pytest.mark.parametrize("batch_size", [3, None])
@pytest.mark.parametrize("sample", SAMPLES)
def test_batches_are_torchs(sample, batch_size):
    dataset = Made(SAMPLES[sample])
    expected = [plain(batch) for batch in Stock(dataset, batch_size=batch_size)]
    assert [plain(batch) for batch in DataLoader(dataset, batch_size=batch_size, num_workers=1)] == expected
    assert [plain(batch) for batch in DataLoader(dataset, batch_size=batch_size)] == expected


@pytest.mark.parametrize("sample", REFUSED)
def test_what_torch_cannot_collate_is_refused_alike(sample):
    dataset = Made(REFUSED[sample])

    def refusal(loader: Any) -> Exception:
        with pytest.raises((RuntimeError, TypeError, KeyError, ValueError, AttributeError)) as caught:
            next(iter(loader))
        return caught.value

    expected = refusal(Stock(dataset, batch_size=3))
    for workers in (0, 1):
        error = refusal(DataLoader(dataset, batch_size=3, num_workers=workers))
        assert isinstance(error, type(expected)), "clauses that catch torch's error catch ours"
        assert str(expected).split(":")[0] in str(error), "and people find torch's words in it"


@pytest.mark.parametrize("workers", [0, 2])
def test_types_that_the_user_taught_torch_to_collate_are_collated(workers):
    class Graph:
        def __init__(self, nodes: int) -> None:
            self.nodes = nodes

    def together(graphs: list[Graph], *, collate_fn_map: Any = None) -> Graph:
        return Graph(sum(graph.nodes for graph in graphs))

    known = torch.utils.data._utils.collate.default_collate_fn_map
    known[Graph] = together
    try:
        batches = list(DataLoader(Made(Graph), batch_size=3, num_workers=workers))
        pairs = list(DataLoader(Made(lambda i: (Graph(i), torch.ones(2))), batch_size=3, num_workers=workers))
    finally:
        del known[Graph]
    assert [batch.nodes for batch in batches] == [3, 12, 6]
    assert [graph.nodes for graph, _ in pairs] == [3, 12, 6]
    assert all(isinstance(batch, Graph) for batch in batches)


@pytest.mark.parametrize("kind", [Mapping, (dict, Decimal), object], ids=str)
def test_a_function_that_the_user_taught_torch_for_plain_samples_is_used(kind, monkeypatch):
    def listed(samples: list[Any], *, collate_fn_map: Any = None) -> Any:
        return [*map(str, samples)]

    monkeypatch.setitem(torch.utils.data._utils.collate.default_collate_fn_map, kind, listed)
    dataset = Made(lambda index: {"index": index}, 4)
    for options in ({}, {"num_workers": 1}, {"num_workers": 1, "workers": "thread"}):
        (batch,) = DataLoader(dataset, batch_size=4, **options)
        assert batch == [str({"index": index}) for index in range(4)]


def test_a_tensor_function_that_the_user_put_in_torchs_place_is_used():
    known = torch.utils.data._utils.collate.default_collate_fn_map
    stock = known[torch.Tensor]

    def padded(tensors: list[torch.Tensor], *, collate_fn_map: Any = None) -> torch.Tensor:
        return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)

    known[torch.Tensor] = padded
    try:
        (batch,) = DataLoader(Made(lambda i: torch.ones(i + 1), 3), batch_size=3, num_workers=1)
    finally:
        known[torch.Tensor] = stock
    assert batch.sum(1).tolist() == [1, 2, 3]


def test_a_collate_fn_of_ones_own_gets_the_samples_as_they_are():
    class Keeping:
        def __call__(self, samples: list[Any]) -> Any:
            assert type(samples) is list
            return tuple(samples)

    for workers in (0, 1):
        got = list(DataLoader(Made(SAMPLES["a namedtuple"]), batch_size=4, collate_fn=Keeping(), num_workers=workers))
        assert [len(batch) for batch in got] == [4, 3]
        assert type(got[0][2]) is Point
        assert got[1][0].y == Point(4, "4")


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_datapipes_are_sharded_and_shuffled_as_by_torch(workers, shuffle):
    def numbers(make: Any) -> list[Any]:
        torch.manual_seed(3)
        pipe = IterableWrapper(range(20)).shuffle().sharding_filter().batch(3)
        loader = make(pipe, batch_size=None, shuffle=shuffle, num_workers=workers)
        return [[list(batch) for batch in loader] for _ in range(2)]

    got = numbers(DataLoader)
    assert [sorted(number for batch in epoch for number in batch) for epoch in got] == [list(range(20))] * 2
    assert got == numbers(Stock)


def test_map_datapipes_work():
    for workers in (0, 2):
        pipe = SequenceWrapper(list(range(10)))
        assert [batch.tolist() for batch in DataLoader(pipe, batch_size=4, num_workers=workers)] == [
            [0, 1, 2, 3],
            [4, 5, 6, 7],
            [8, 9],
        ]


def test_workers_know_who_they_are():
    class Asks(Squares):
        def __getitem__(self, index: int) -> Any:
            info, ours = torch.utils.data.get_worker_info(), holdfast.get_worker_info()
            same = (ours.id, ours.num_workers) == (info.id, info.num_workers)
            return info.id, info.num_workers, info.seed, info.dataset is self, same

    def keep(samples: list[Any]) -> Any:
        return samples[0]

    assert torch.utils.data.get_worker_info() is None
    torch.manual_seed(1)
    got = list(DataLoader(Asks(), num_workers=2, collate_fn=keep))
    assert {(number, seats, mine, same) for number, seats, _, mine, same in got} == {
        (0, 2, True, True),
        (1, 2, True, True),
    }
    seeds = {number: seed for number, _, seed, _, _ in got}
    assert seeds[1] == seeds[0] + 1
    torch.manual_seed(1)
    assert {number: seed for number, _, seed, _, _ in Stock(Asks(), num_workers=2, collate_fn=keep)} == seeds
