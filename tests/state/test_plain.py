"""What a data set says of its state comes back as it was, through JSON and through ``torch.load``."""

from __future__ import annotations

import copy
import io
import json
import math
import os
import random
import struct
import subprocess
import sys
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as some

from holdfast.errors import HoldfastError, UnsavableState
from holdfast.state.plain import MARK, from_plain, to_plain

PLAIN = {type(None), bool, int, float, str, list, dict}
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]
DTYPES += ["complex128", "float8_e4m3fn", "uint16"]


def only_plain(value: Any) -> bool:
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(map(only_plain, value.values()))
    return all(map(only_plain, value)) if type(value) is list else type(value) in PLAIN


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))


def through_torch(value: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def same(one: Any, other: Any) -> bool:
    """Of the same type throughout, and equal to the bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float) and type(one) is float:
        return (math.isnan(one) and math.isnan(other)) or struct.pack("d", one) == struct.pack("d", other)
    if isinstance(one, complex) and type(one) is complex:
        return same([one.real, one.imag], [other.real, other.imag])
    if isinstance(one, torch.Tensor):
        return (one.dtype, one.shape) == (other.dtype, other.shape) and same(bits(one), bits(other))
    if isinstance(one, numpy.ndarray | numpy.generic):
        return (one.dtype.str, one.shape, one.tobytes()) == (other.dtype.str, other.shape, other.tobytes())
    if isinstance(one, dict):
        facts = [getattr(each, "default_factory", None) for each in (one, other)]
        return facts[0] is facts[1] and same([*one], [*other]) and same([*one.values()], [*other.values()])
    if isinstance(one, set | frozenset):
        return len(one) == len(other) and all(any(same(item, found) for found in other) for item in one)
    if isinstance(one, list | tuple | deque):
        facts = [getattr(each, "maxlen", None) for each in (one, other)]
        return facts[0] == facts[1] and len(one) == len(other) and all(map(same, one, other))
    return one == other


def bits(tensor: torch.Tensor) -> list[int]:
    return tensor.resolve_conj().contiguous().reshape(-1).view(torch.uint8).tolist()


def check(value: Any) -> Any:
    plain = to_plain(value)
    assert only_plain(plain)
    for copied in (plain, through_json(plain), through_torch(plain)):
        assert copied == plain
        assert same(from_plain(copied), value)
    return plain


# -- anything ------------------------------------------------------------------------------------


@some.composite
def tensors(draw: some.DrawFn) -> torch.Tensor:
    shape = draw(some.lists(some.integers(0, 3), max_size=3))
    dtype = getattr(torch, draw(some.sampled_from(DTYPES)))
    numbers = torch.arange(math.prod(shape)).reshape(shape) - 3
    made = (numbers != 0) if dtype is torch.bool else numbers.to(dtype)
    return made.transpose(0, -1) if shape and draw(some.booleans()) else made


@some.composite
def arrays(draw: some.DrawFn) -> numpy.ndarray:
    shape = draw(some.lists(some.integers(0, 3), max_size=3))
    dtype = draw(some.sampled_from(["?", "<i4", ">i4", "<u2", "<f2", "<f8", "<c8", "<U3", "|S3", "<M8[ns]", "<m8[D]"]))
    made = numpy.arange(math.prod(shape)).astype(dtype).reshape(shape)
    return made.T if draw(some.booleans()) else made


strings = some.text(some.characters(exclude_categories=())) | some.just(MARK)
numbers = some.integers() | some.floats() | some.complex_numbers() | some.integers(2**1000, 2**20000).map(lambda n: -n)
scalars = some.sampled_from([numpy.float32(0.1), numpy.int64(-3), numpy.bool_(True), numpy.str_("é"), numpy.float64(2)])
keys = some.none() | some.booleans() | strings | some.integers() | some.binary() | some.floats(allow_nan=False)
keys = keys | some.tuples(keys, keys) | some.frozensets(keys, max_size=3)
leaves = some.one_of(
    keys,
    numbers,
    scalars,
    tensors(),
    arrays(),
    some.binary().map(bytearray),
    some.builds(range, some.integers(-5, 5), some.integers(), some.integers(1, 9)),
    some.sets(keys, max_size=4),
    some.lists(some.integers(0, 9), max_size=3).map(torch.Size),
    some.sampled_from(DTYPES).map(lambda name: getattr(torch, name)),
    some.dictionaries(keys, some.integers(), max_size=3).map(Counter),
)


def containers(inner: some.SearchStrategy[Any]) -> some.SearchStrategy[Any]:
    dicts = some.dictionaries(keys, inner, max_size=4)
    lists = some.lists(inner, max_size=4)
    return some.one_of(
        lists,
        lists.map(tuple),
        some.builds(deque, lists, some.none() | some.integers(0, 5)),
        some.dictionaries(strings, inner, max_size=4),
        dicts,
        dicts.map(OrderedDict),
        some.builds(defaultdict, some.sampled_from([None, list, int, dict, set, str, float, bool]), dicts),
    )


@settings(deadline=None, max_examples=300)
@given(some.recursive(leaves, containers, max_leaves=12))
@example(value=True)
@example(value=[2**1024 - 1, 2**1024, -(2**2040), 2**2048, 10**6000])
@example(value=[-0.0, math.nan, math.inf, -math.inf, 5e-324])
@example(value={MARK: {MARK: "tuple", "items": []}})
@example(value={1: "a", "1": "b", False: 3, (1, (2,)): 4})
@example(value=torch.tensor([1 + 2j, 3]).conj())
@example(value=torch.arange(12).reshape(3, 4)[:, ::2])
@example(value=numpy.array("", dtype="<U0"))
def test_a_state_comes_back_as_it_was(value: Any):
    check(value)


@pytest.mark.parametrize(
    "value",
    [
        torch.Generator().get_state(),
        numpy.random.RandomState(3).get_state(),
        numpy.random.default_rng(3).bit_generator.state,
        random.Random(3).getstate(),
    ],
    ids=["torch", "numpy", "PCG64", "Python"],
)
def test_the_state_of_a_generator_comes_back_as_it_was(value: Any):
    check(value)


# -- what it looks like --------------------------------------------------------------------------


def test_what_is_plain_stays_as_it_is():
    state = {"epoch": 3, "files": ["a", "b"], "nested": {"loss": 0.5, "done": False, "best": None}}
    assert to_plain(state) == state
    assert from_plain(state) == state


def test_a_dict_with_strings_as_keys_stays_one_with_the_same_keys():
    plain = to_plain({"position": torch.tensor(3, dtype=torch.int8), "seen": {1}, "pair": (1, 2)})
    assert plain == {
        "position": {MARK: "tensor", "dtype": "int8", "shape": [], "data": "Aw=="},
        "seen": {MARK: "set", "items": [1]},
        "pair": {MARK: "tuple", "items": [1, 2]},
    }


def test_a_set_looks_the_same_in_every_process():
    program = "from holdfast.state.plain import to_plain; print(to_plain({*'abcdef', 1, (2, 'd'), None}))"

    def told(seed: str) -> bytes:
        environment = os.environ | {"PYTHONHASHSEED": seed}
        return subprocess.run(
            [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, check=True
        ).stdout

    assert told("1") == told("2")


def test_the_plain_state_shares_nothing_with_the_state():
    state = {"list": [1], "set": {1}, "array": numpy.zeros(3), "tensor": torch.zeros(3), "bytes": bytearray(b"ab")}
    plain = to_plain(state)
    before = copy.deepcopy(plain)
    made = from_plain(plain)
    for each in (state, made):
        each["list"].append(2)
        each["set"].add(2)
        each["array"][0] = each["tensor"][0] = 1
        each["bytes"][0] = 0
    assert plain == before
    assert same(from_plain(before)["tensor"], torch.zeros(3))


def test_a_tensor_that_is_trained_comes_back_without_its_gradient():
    made = from_plain(to_plain(torch.ones(2, requires_grad=True)))
    assert made.tolist() == [1, 1]
    assert not made.requires_grad


# -- what cannot be saved ------------------------------------------------------------------------


class Text(str):
    __slots__ = ()


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (object(), "object"),
        (len, "builtin_function_or_method"),
        (Text("a"), f"{__name__}.Text"),
        (Point(1, 2), f"{__name__}.Point"),
        (Path("a"), "pathlib.PosixPath"),
        (torch.nn.Parameter(torch.ones(1)), "torch.nn.parameter.Parameter"),
        (torch.eye(2).to_sparse(), "torch.Tensor"),
        (torch.ones(1, device="meta"), "torch.Tensor"),
        (numpy.array([object()]), "numpy.ndarray"),
        (numpy.zeros(2, dtype=[("a", "i4")]), "numpy.ndarray"),
        (numpy.zeros(2).view(numpy.matrix), "numpy.matrix"),
        (defaultdict(lambda: 3), "collections.defaultdict"),
        ((number for number in range(3)), "generator"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_saved_is_named_with_its_place_and_kind(value: Any, kind: str):
    with pytest.raises(UnsavableState) as caught:
        to_plain({"files": [0, {3: (1, value)}]}, "the data set's state")
    error = caught.value
    assert error.path == "the data set's state['files'][1][3][1]"
    assert error.kind.replace("numpy.matrixlib.defmatrix", "numpy") == kind
    assert str(error).startswith(f"the data set's state['files'][1][3][1] ({error.kind}) cannot be")
    assert "load_state_dict()" in str(error)
    assert isinstance(error, TypeError)
    assert isinstance(error, HoldfastError)


def test_a_key_that_cannot_be_saved_is_named():
    with pytest.raises(UnsavableState, match=r"state\[PosixPath\('a'\)\] \(pathlib.PosixPath\)"):
        to_plain({Path("a"): 1})
    with pytest.raises(UnsavableState, match=r"state\[PosixPath\('a'\)\] \(pathlib.PosixPath\)"):
        to_plain({Path("a")})


def test_what_contains_itself_is_an_error():
    state: dict[str, Any] = {}
    state["again"] = [state]
    with pytest.raises(UnsavableState, match="contains itself"):
        to_plain(state)


def test_a_kind_of_a_later_version_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"should be one of int, float, .* but got 'quaternion'"):
        from_plain({"a": [{MARK: "quaternion"}]})
