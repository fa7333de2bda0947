"""What a sample looks like is told in words that can be compared."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from PIL import Image

from holdfast.scanning.look import CONSTANT, EMPTY, INF, NAN, Look, look_at

NAN_, INF_ = float("nan"), float("inf")
Pair = namedtuple("Pair", "x y")


@dataclass
class Record:
    image: torch.Tensor
    label: int


def kinds(look: Look) -> dict[str, str]:
    return {path: node.kind for path, node in look.nodes()}


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (3, {"": "int"}),
        (None, {"": "None"}),
        (torch.zeros(2, 3), {"": "float32 tensor, 2-d"}),
        (np.zeros(2, np.uint8), {"": "uint8 array, 1-d"}),
        ((1, "x"), {"": "tuple of 2", "[0]": "int", "[1]": "str"}),
        ({"b": 1, "a": 2.0}, {"": "dict of a, b", "['a']": "float", "['b']": "int"}),
        ([1, 2, 3], {"": "list", "[…]": "int"}),
        (Record(torch.zeros(1), 3), {"": "test_look.Record", ".image": "float32 tensor, 1-d", ".label": "int"}),
        (Image.new("L", (4, 2)), {"": "image L"}),
        (torch.nn.Parameter(torch.ones(2)), {"": "float32 tensor, 1-d"}),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, dict) else "",
)
def test_types_are_told_by_path(sample, expected):
    assert kinds(look_at(sample)) == expected


def test_a_named_tuple_is_a_tuple_with_its_name():
    assert kinds(look_at(Pair(1, 2)))[""] == "test_look.Pair of 2"


@pytest.mark.parametrize(
    ("sample", "marks"),
    [
        (torch.tensor([1.0, NAN_]), (NAN,)),
        (torch.tensor(NAN_), (NAN,)),
        (torch.tensor([1.0, -INF_]), (INF,)),
        (torch.tensor([INF_, -INF_]), (INF,)),
        (torch.tensor([INF_, NAN_] * 20), (NAN, INF)),
        (torch.full((2, 32), NAN_, dtype=torch.float16), (NAN,)),
        (torch.zeros(0, 4), (EMPTY,)),
        (torch.zeros(4, 4), (CONSTANT,)),
        (np.array([1.0, NAN_]), (NAN,)),
        (np.array([1.0, INF_]), (INF,)),
        (np.full((4, 4), 255, np.uint8), (CONSTANT,)),
        (np.array(NAN_), (NAN,)),
        (torch.cat([torch.arange(100.0), torch.tensor([NAN_])]), (NAN,)),
        (torch.cat([torch.arange(100.0), torch.tensor([INF_])]), (INF,)),
        (NAN_, (NAN,)),
        (np.float32(INF_), (INF,)),
        ("", (EMPTY,)),
        ([], (EMPTY,)),
        # near misses
        (torch.tensor([1.0, 3.4e38, 3.4e38]), ()),
        (torch.tensor([6e4, 6e4] * 20 + [1], dtype=torch.float16), ()),
        (torch.zeros(3), ()),
        (torch.arange(16), ()),
        (torch.tensor([7] + [8] * 20 + [7], dtype=torch.uint8), ()),
        (np.array([7] + [8] * 20 + [7]), ()),
        (torch.full((20,), 3e38) * torch.tensor([1.0] * 19 + [-1.0]), ()),
        (torch.zeros(4, 4, dtype=torch.complex64), ()),
        (torch.zeros(4, 4, device="meta"), ()),
        (torch.eye(4).to_sparse(), ()),
        (np.array(["a", None], object), ()),
        (0.0, ()),
        (1e308, ()),
    ],
    ids=str,
)
def test_what_is_wrong_with_its_numbers(sample, marks):
    assert look_at(sample).marks == marks


def test_equal_looks_are_equal_and_others_are_not():
    assert look_at((torch.zeros(3), 1)) == look_at((torch.ones(3), 2))
    assert look_at(torch.zeros(3)) != look_at(torch.zeros(4))
    assert look_at(torch.zeros(3)) != look_at(torch.zeros(3, dtype=torch.float64))
    assert hash(look_at({"a": [torch.zeros(2)]})) == hash(look_at({"a": [torch.ones(2)]}))


def test_what_is_long_or_deep_is_looked_at_no_further():
    deep: list = []
    deep.append(deep)
    assert len(list(look_at(deep).nodes())) < 20
    assert list(look_at(dict.fromkeys(range(1000))).nodes()) == [("", Look("dict", (1000,)))]
    assert len(list(look_at([object() for _ in range(10_000)]).nodes())) == 2


def test_an_image_that_is_read_only_now_fails_now(tmp_path):
    path = tmp_path / "a.jpg"
    Image.effect_noise((64, 64), 50).save(path)
    path.write_bytes(path.read_bytes()[:-500])
    with Image.open(path) as image, pytest.raises(OSError):
        look_at(image)
