"""Which samples are to blame for a batch that cannot be made, without a loader."""

from __future__ import annotations

import collections
import math
import pickle
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch.utils.data import default_collate
from torch.utils.data._utils.collate import default_collate_fn_map

from holdfast._worker.collate import collate_into
from holdfast._worker.culprits import explain_collate, guilty, none_in, odd_ones, unequal
from holdfast.errors import NoneSample, UnequalSamples


class Point(NamedTuple):
    x: Any
    y: Any


def small() -> torch.Tensor:
    return torch.zeros(3, 20)


def large() -> torch.Tensor:
    return torch.zeros(3, 24)


def accepts(samples: list[Any]) -> bool:
    try:
        default_collate(samples)
    except Exception:
        return False
    return True


NONES = {
    "a sample": ([1, None, 2, None], [(1, "sample"), (3, "sample")]),
    "all": ([None, None], [(0, "sample"), (1, "sample")]),
    "in a tuple": ([(small(), None), (small(), 1)], [(0, "sample[1]")]),
    "in a dict": ([{"image": small()}, {"image": None}], [(1, "sample['image']")]),
    "in a namedtuple": ([Point(1, 2), Point(1, None)], [(1, "sample.y")]),
    "nested": ([{"a": [(1, 2)]}, {"a": [(1, None)]}], [(1, "sample['a'][0][1]")]),
    "several": ([(None, 1), None, (2, None)], [(0, "sample[0]"), (1, "sample"), (2, "sample[1]")]),
    "beside texts, which may be anything": ([("a", 1), (None, 2)], []),
    "in a key that the first has not": ([{"a": 1}, {"a": 2, "b": None}], []),
    "nowhere": ([(1, "a"), (2, "b")], []),
    "no samples": ([], []),
}


@pytest.mark.parametrize(("samples", "expected"), NONES.values(), ids=NONES)
def test_a_none_that_cannot_be_in_a_batch_is_found(samples, expected):
    assert none_in(samples) == expected
    assert accepts(samples) is not bool(expected) or not samples


DIFFERENCES = {
    "shape": ([small(), large(), small()], ("sample", 0, "(3, 20)", 1, "(3, 24)"), [1]),
    "the first is odd": ([large(), small(), small()], ("sample", 1, "(3, 20)", 0, "(3, 24)"), [0]),
    "a tie": ([large(), small(), large(), small()], ("sample", 0, "(3, 24)", 1, "(3, 20)"), [1, 3]),
    "in a tuple": ([(0, small()), (1, small()), (2, large())], ("sample[1]", 0, "(3, 20)", 2, "(3, 24)"), [2]),
    "in a dict": (
        [{"a": {"b": small()}}, {"a": {"b": large()}}],
        ("sample['a']['b']", 0, "(3, 20)", 1, "(3, 24)"),
        [1],
    ),
    "in a namedtuple": ([Point(1, small()), Point(2, large())], ("sample.y", 0, "(3, 20)", 1, "(3, 24)"), [1]),
    "arrays": ([numpy.zeros((2, 3)), numpy.zeros((3, 2))], ("sample", 0, "(2, 3)", 1, "(3, 2)"), [1]),
    "length": ([[1, 2], [1, 2], [1, 2, 3]], ("sample", 0, "length 2", 2, "length 3"), [2]),
    "a missing key": ([{"a": 1, "b": 2}, {"a": 1}], ("sample", 0, "key 'b'", 1, "no key 'b'"), [1]),
    "an added key, first": ([{"a": 1, "b": 2}, *[{"a": 1}] * 2], ("sample", 1, "no key 'b'", 0, "key 'b'"), [0]),
    "a number and a text": ([1, 2.0, "3"], ("sample", 0, "int", 2, "str"), [2]),
    "a tensor and an array": (
        [small(), numpy.zeros((3, 20))],
        ("sample", 0, "Tensor (3, 20)", 1, "ndarray (3, 20)"),
        [1],
    ),
    "a tensor and none": ([None, None, small()], ("sample", 2, "Tensor (3, 20)", 0, "None"), [0, 1]),
    "a tuple and a number": ([(1, 2), 3], ("sample", 0, "tuple of length 2", 1, "int"), [1]),
    "in two members": (
        [(small(), 1), (large(), 1), (small(), "x"), (small(), 2)],
        ("sample[0]", 0, "(3, 20)", 1, "(3, 24)"),
        [1, 2],
    ),
    "an array that may go first": (
        [numpy.zeros((3, 20)), small(), small(), large()],
        ("sample", 1, "(3, 20)", 3, "(3, 24)"),
        [3],
    ),
    "keys that nobody asks for": (
        [{"a": 1}, {"a": 1, "b": 2}, {"a": 1, "c": 2}, {}],
        ("sample", 0, "key 'a'", 3, "no key 'a'"),
        [3],
    ),
    "all in pairs, but not together": ([[], {}, {}, 5], ("sample", 1, "dict", 0, "list of length 0"), [0, 3]),
    "texts in an array": ([numpy.array(["a"]), numpy.array([1])], ("sample", 1, "(1,)", 0, "(1,)"), [0]),
}


@pytest.mark.parametrize(("samples", "difference", "odd"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_samples_that_cannot_be_one_batch_are_told_apart_from_the_majority(samples, difference, odd):
    assert not accepts(samples)
    assert unequal(samples) == difference
    assert odd_ones(samples) == odd
    assert accepts([sample for n, sample in enumerate(samples) if n not in odd])


EQUAL = {
    "types of tensor": [small(), small().int(), small().bool()],
    "types of array": [numpy.zeros(3), numpy.zeros(3, numpy.uint8)],
    "an array, then a tensor": [numpy.zeros(3), torch.zeros(3), [1, 2, 3]],
    "numbers": [1, 2.5, True, numpy.float32(3), torch.tensor(4)],
    "texts and others": ["a", b"b", None, 3, small()],
    "lists and tuples": [[1, 2], (3, 4), range(2), torch.tensor([1, 2])],
    "a namedtuple and longer ones": [Point(1, 2), (3, 4, 5)],
    "kinds of dict": [{"a": 1}, collections.OrderedDict(b=2, a=3), {"a": 1, "c": 1}],
    "empty ones": [(), [], {}],
    "one": [small()],
    "none at all": [],
}


@pytest.mark.parametrize("samples", EQUAL.values(), ids=EQUAL)
def test_what_torch_takes_together_is_never_called_odd(samples):
    assert accepts(samples) or not samples
    assert unequal(samples) is None
    assert none_in(samples) == odd_ones(samples) == []


def test_when_none_would_be_taken_none_is_odd():
    images = [Image.new("L", (2, 2)), Image.new("L", (2, 2))]
    assert unequal(images) is None
    assert odd_ones(images) == []
    assert odd_ones([images[0], images[1], small()]) == [0, 1]


def test_types_that_the_user_taught_torch_are_left_to_the_user():
    def keep(batch: list[Any], *, collate_fn_map: Any = None) -> list[Any]:
        return batch

    samples = [Image.new("L", (2, 2)), Image.new("L", (3, 3)), None]
    assert none_in([None, 1]) == [(0, "sample")]
    default_collate_fn_map[(Image.Image, type(None))] = keep
    try:
        assert unequal(samples) is None
        assert none_in([None, 1]) == []
    finally:
        del default_collate_fn_map[(Image.Image, type(None))]


leaves = st.sampled_from(
    [0, 1.5, True, "a", b"b", None, small(), large(), numpy.zeros((3, 20)), numpy.zeros(2), torch.tensor(1)]
)
members = leaves | st.tuples(leaves) | st.lists(leaves, max_size=2) | st.builds(Point, leaves, leaves)
values = members | st.dictionaries(st.sampled_from("ab"), members, max_size=2) | st.tuples(members, leaves)


@settings(deadline=None, max_examples=500)
@given(st.lists(values, min_size=1, max_size=5))
def test_it_knows_what_torch_refuses(samples):
    """The rules here are torch's: a batch is refused by both or by none, and what is left of it is taken."""
    refused = unequal(samples) is not None or none_in(samples) != []
    assert refused is not accepts(samples)
    left = [sample for n, sample in enumerate(samples) if n not in odd_ones(samples)]
    assert accepts(left) or none_in(left)  # of samples that are all None inside, none is odd


@settings(deadline=None, max_examples=300)
@given(st.lists(values, min_size=1, max_size=5), st.integers(1, 5), values)
def test_most_of_a_batch_is_kept(samples, count, often):
    batch = [*samples, *[often] * (len(samples) + count)]
    if accepts([often]):
        assert len(odd_ones(batch)) <= len(samples)


# --- any function ---


def sums_to_no_more_than(limit: float) -> Callable[[list[float]], None]:
    def attempt(samples: list[float]) -> None:
        if not sum(samples) <= limit:
            raise ValueError(limit)

    return attempt


def stacks(samples: list[Any]) -> Any:
    return torch.stack(samples)


def test_a_sample_that_fails_alone_is_guilty():
    samples = [1.0, math.nan, 2.0, math.inf]
    assert guilty(samples, sums_to_no_more_than(100)) == [1, 3]


def test_a_function_that_takes_no_sample_blames_none():
    assert guilty([1.0, 2.0, 3.0], sums_to_no_more_than(-1)) == []
    assert guilty([], stacks) == []


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [("aabaa", [2]), ("baaaa", [0]), ("abcccc", [0, 1]), ("abab", [1, 3]), ("abcdd", [0, 1, 2]), ("aaaa", [])],
)
def test_those_that_do_not_agree_with_the_majority_are_guilty(shapes, expected):
    assert guilty([torch.zeros(ord(shape)) for shape in shapes], stacks) == expected


def test_when_pairs_agree_but_not_all_the_last_ones_are_guilty():
    assert guilty([3, 3, 3, 3, 3], sums_to_no_more_than(10)) == [3, 4]
    assert guilty([3, 3, 3, 3, 1], sums_to_no_more_than(10)) == [3]


@pytest.mark.parametrize("shapes", ["a" * 99 + "b", "ab" * 50, "".join(map(chr, range(100, 200))), "abc" * 33])
def test_attempts_are_few(shapes):
    attempts = 0

    def attempt(samples: list[Any]) -> None:
        nonlocal attempts
        attempts += 1
        stacks(samples)

    samples = [torch.zeros(ord(shape)) for shape in shapes]
    blamed = guilty(samples, attempt)
    assert attempts <= 4 * len(samples) + 8
    if blamed:
        stacks([sample for n, sample in enumerate(samples) if n not in blamed])


def misspelled(samples: list[Any]) -> None:
    if samples[0] == 2:
        torch.stak(samples)  # type: ignore[attr-defined]


def not_installed(samples: list[Any]) -> None:
    if samples[0] == 2:
        import there_is_no_such_module  # type: ignore[import-not-found]  # noqa: F401


def undefined(samples: list[Any]) -> None:
    if samples[0] == 2:
        nowhere(samples)  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("attempt", [misspelled, not_installed, undefined])
def test_a_mistake_in_the_code_is_no_fault_of_a_sample(attempt):
    assert guilty([1, 2, 3], attempt) == []


def test_a_missing_attribute_of_a_sample_is_its_own_fault():
    assert guilty([small(), 3, small()], lambda samples: [sample.shape for sample in samples]) == [1]


# --- what is raised instead ---


def quick(samples: list[Any]) -> Any:
    """The collate function of a worker, which takes short ways."""
    stock = dict(default_collate_fn_map)
    try:
        return collate_into(lambda shape, dtype, *_: torch.empty(shape, dtype=dtype), {})(samples)
    finally:
        default_collate_fn_map.update(stock)


def explained(collate: Callable[[list[Any]], Any], samples: list[Any], indices: Any) -> tuple[Exception, Exception]:
    try:
        collate(samples)
    except Exception as error:
        return explain_collate(error, samples, indices, lambda position: f"/data/{position}.jpg"), error
    raise AssertionError("it was accepted")


@pytest.mark.parametrize("collate", [default_collate, quick])
@pytest.mark.parametrize(
    ("samples", "index", "member"),
    [
        ([None, 1], 70, "sample"),
        ([1, None], 71, "sample"),
        ([small(), None], 71, "sample"),
        ([(small(), 1), None], 71, "sample"),
        ([(small(), 1), (small(), None)], 71, "sample[1]"),
        ([(small(), 1), (None, None)], 71, "sample[0]"),
        ([Point(1, 2), None], 71, "sample"),
        ([{"image": numpy.zeros(2)}, {"image": None}], 71, "sample['image']"),
    ],
)
def test_a_none_is_explained(collate, samples, index, member):
    error, _ = explained(collate, samples, [70, 71])
    assert isinstance(error, NoneSample)
    assert (error.index, error.member, error.where) == (index, member, f"/data/{index - 70}.jpg")


@pytest.mark.parametrize("collate", [default_collate, quick])
def test_unequal_samples_are_explained(collate):
    samples = [(small(), 0), (small(), 1), (large(), 2)]
    error, original = explained(collate, samples, [70, 71, 72])
    assert isinstance(error, UnequalSamples)
    assert error.member == "sample[0]"
    assert error.first == (70, "(3, 20)", "/data/0.jpg")
    assert error.second == (72, "(3, 24)", "/data/2.jpg")
    assert error.reason == str(original)
    assert "stack expects each tensor to be equal size" in str(error)


def test_two_of_a_batch_can_be_explained_by_themselves():
    samples = [small(), large(), small(), large()]
    with pytest.raises(RuntimeError) as caught:
        default_collate(samples)
    error = explain_collate(caught.value, [samples[2], samples[3]], [72, 73], str)
    assert isinstance(error, UnequalSamples)
    assert (error.first, error.second) == ((72, "(3, 20)", "0"), (73, "(3, 24)", "1"))


def test_a_none_elsewhere_is_not_blamed_for_unequal_samples():
    error, _ = explained(default_collate, [(small(), 1), (large(), None)], [70, 71])
    assert isinstance(error, UnequalSamples)


def test_a_sample_of_a_stream_has_no_index_but_a_place():
    error, _ = explained(default_collate, [small(), None], None)
    assert str(error).startswith("dataset[item 1] gave None [HF303]")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_what_nothing_explains_stays_as_it_is():
    images = [Image.new("L", (2, 2)), Image.new("L", (2, 2))]
    same, error = explained(default_collate, images, [0, 1])
    assert same is error


def test_an_error_of_the_users_own_function_stays_as_it_is():
    """Its samples are unequal by design, and what it hands to default_collate is something else."""

    def pads(samples: list[Any]) -> Any:
        padded = [torch.nn.functional.pad(sample, (0, 30 - sample.shape[-1])) for sample in samples]
        return default_collate([padded[0], padded[1][:2]])

    same, error = explained(pads, [small(), large()], [0, 1])
    assert same is error
    assert "equal size" in str(error)


def test_a_function_that_passes_the_samples_on_is_explained():
    error, _ = explained(lambda samples: default_collate(samples), [small(), large()], [0, 1])
    assert isinstance(error, UnequalSamples)


def test_explaining_never_raises():
    def where(position: int) -> str:
        raise OSError

    samples = [small(), None]
    with pytest.raises(TypeError) as caught:
        default_collate(samples)
    assert explain_collate(caught.value, samples, [0, 1], where) is caught.value
    assert explain_collate(caught.value, samples, [], lambda position: "") is caught.value


def test_a_large_batch_is_soon_looked_through():
    """Batches of 1000 take tens of milliseconds: huge lists are looked at in part, and lists may hold themselves."""
    endless: list[Any] = []
    endless.append(endless)
    huge = list(range(10_000))
    batches = [
        [(small(), n) for n in range(999)] + [(large(), 0)],
        [{"tokens": huge, "image": small()} for _ in range(999)] + [{"tokens": huge, "image": large()}],
        [torch.zeros(n) for n in range(1000)],
        [endless] * 1000,
    ]
    begun = time.perf_counter()
    assert [unequal(batch) is not None for batch in batches] == [True, True, True, False]
    assert [len(odd_ones(batch)) for batch in batches] == [1, 1, 999, 0]
    assert [none_in(batch) for batch in batches] == [[]] * 4
    assert time.perf_counter() - begun < 5  # generous
