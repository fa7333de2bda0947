"""Samples are compared leaf by leaf, and what loading has changed is named."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import defects
import numpy
import pytest
import torch

from holdfast.doctor.contents import compared, leaves
from holdfast.doctor.traces import changes, trace


class Pair(NamedTuple):
    image: Any
    label: Any


@pytest.mark.parametrize(
    ("one", "other", "leaf"),
    [
        ({"a": torch.zeros(1000)}, {"a": torch.zeros(1000).index_fill_(0, torch.tensor([777]), 1)}, "sample['a']"),
        (Pair(numpy.zeros(3), 1), Pair(numpy.zeros(3), 2), "sample.label"),
        ((torch.zeros(2), [1, {"x": "a"}]), (torch.zeros(2), [1, {"x": "b"}]), "sample[1][1]['x']"),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64), "sample"),
        (numpy.zeros((2, 3)), numpy.zeros((3, 2)), "sample"),
        ([1, 2], [1, 2, 3], "sample[2]"),
        (list(range(50)), [*range(49), 0], "sample"),
        (torch.tensor(True), torch.tensor(False), "sample"),
        (1, 1.0, "sample"),
    ],
    ids=repr,
)
def test_the_leaf_that_differs_is_named(one, other, leaf):
    found = compared("3", leaves(one), leaves(other))
    assert found is not None
    assert found.leaf == leaf


@pytest.mark.parametrize(
    "make",
    [
        lambda: {"a": torch.arange(6.0).reshape(2, 3).T, "b": float("nan"), "c": None, "d": b"x" * 5000},
        lambda: (torch.zeros(0), numpy.zeros(0), torch.tensor(1, dtype=torch.bfloat16), {"é", "a"}),
        lambda: [numpy.array(["a", None], dtype=object), numpy.float32(3), Pair(1, 2)],
        lambda: LOCK,
    ],
)
def test_equal_samples_are_equal(make):
    assert compared("3", leaves(make()), leaves(make())) is None


LOCK = threading.Lock()


def test_a_value_that_changes_and_a_container_that_grows_are_named():
    dataset: Any = defects.Caches()
    dataset.count, dataset.lazy, dataset.weights, dataset.names = 1, None, torch.zeros(5), ["a"]
    before = trace(dataset)
    dataset.count, dataset.lazy, dataset.weights = 2, object(), torch.ones(5)
    dataset.cache[1] = 1
    dataset.names[0] = "b"
    found = {change.path: change.grew for change in changes(before, trace(dataset))}
    assert found == {
        "dataset.cache": True,
        "dataset.count": False,
        "dataset.weights": False,
        "dataset.names[0]": False,
    }


def test_globals_of_its_module_and_attributes_of_its_class_belong_to_it(monkeypatch: pytest.MonkeyPatch):
    before = trace(defects.Counts())
    monkeypatch.setattr(defects, "COUNT", 5)
    monkeypatch.setattr(defects.Counts, "total", 1, raising=False)
    assert [change.path for change in changes(before, trace(defects.Counts()))] == ["defects.COUNT"]
    between = trace(defects.Counts())
    monkeypatch.setattr(defects.Counts, "total", 2)
    assert [change.path for change in changes(between, trace(defects.Counts()))] == ["Counts.total"]
