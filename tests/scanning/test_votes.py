"""A sample is odd when nearly all others agree on something else; variety is not odd."""

from __future__ import annotations

import json
import random

import pytest

from holdfast.scanning.look import CONSTANT, EMPTY, NAN, Look
from holdfast.scanning.votes import MANY, Votes


def counted(looks: list[Look], total: int | None = None) -> Votes:
    votes = Votes(len(looks) if total is None else total)
    for position, look in enumerate(looks):
        votes.hear(look, [position])
    return votes


def told(votes: Votes) -> list[tuple[str, str, list[int]]]:
    return [(odd.aspect, odd.found, list(odd.positions or ())) for odd in votes.odd()]


def picture(*shape: int, marks: tuple[str, ...] = (), kind: str = "float32 tensor") -> Look:
    return Look(f"{kind}, {len(shape)}-d", shape, marks)


USUAL = picture(3, 8, 8)


@pytest.mark.parametrize(
    ("odd", "aspect", "found"),
    [
        (picture(3, 8, 9), "shape", "3×8×9"),
        (picture(8, 8), "kind", "float32 tensor, 2-d"),
        (picture(3, 8, 8, kind="float64 tensor"), "kind", "float64 tensor, 3-d"),
        (Look("None"), "kind", "None"),
        (picture(3, 8, 8, marks=(NAN,)), NAN, NAN),
        (picture(3, 8, 8, marks=(CONSTANT,)), CONSTANT, CONSTANT),
        (picture(3, 0, 8, marks=(EMPTY,)), EMPTY, EMPTY),
    ],
)
@pytest.mark.parametrize("count", [5, 300])
def test_the_one_that_differs_is_found_once(odd, aspect, found, count):
    looks = [USUAL] * count
    looks[4] = odd
    assert told(counted(looks)) == [(aspect, found, [4])]


@pytest.mark.parametrize(
    "looks",
    [
        [USUAL] * 50,
        [picture(3, 8, 8 + n % 7) for n in range(200)],  # images of any size,
        [picture(3, n, 8) for n in range(1000)],  # ... each of its own
        [USUAL] * 190 + [picture(3, 9, 9)] * 10,  # a usual size, and not a rule
        [USUAL] * 60 + [picture(8, 8)] * 40,  # grey ones among the coloured
        [picture(4, 4, marks=(CONSTANT,) if n % 20 == 0 else ()) for n in range(200)],  # empty masks now and then
        [picture(4, 4, marks=(EMPTY,) if n % 10 == 0 else ()) for n in range(200)],
        [USUAL, picture(8, 8)],  # who is the odd one of two?
        [Look("list", (n,), (), (("[…]", Look("int")),)) for n in range(1, 100)],  # texts of any length
        [Look(f"dict of {n}") for n in range(2 * MANY)],
    ],
    ids=range(10),
)
def test_variety_is_not_odd(looks):
    assert told(counted(looks)) == []


def test_bad_numbers_are_odd_however_many_up_to_half():
    some = [picture(4, marks=(NAN,))] * 40 + [picture(4)] * 60
    assert told(counted(some)) == [(NAN, NAN, list(range(40)))]
    most = [picture(4, marks=(NAN,))] * 60 + [picture(4)] * 40
    assert told(counted(most)) == []


def test_parts_are_voted_on_apart():
    usual = Look("tuple of 2", None, (), (("[0]", USUAL), ("[1]", Look("int"))))
    odd = Look("tuple of 2", None, (), (("[0]", USUAL), ("[1]", Look("None"))))
    (found,) = counted([usual] * 20 + [odd]).odd()
    assert (found.path, found.found, found.usual, found.count, found.of) == ("[1]", "None", "int", 1, 21)


def test_a_shape_is_compared_with_those_of_its_kind_only():
    grey, coloured = picture(8, 8), picture(3, 8, 8)
    looks = [coloured] * 500 + [grey] * 4
    assert told(counted(looks)) == [("kind", "float32 tensor, 2-d", [500, 501, 502, 503])]


def test_what_is_kept_does_not_grow_with_the_samples():
    votes = Votes(1_000_000)
    rng = random.Random(0)
    for start in range(0, 1_000_000, 1000):
        votes.hear(picture(3, rng.randrange(8, 12), 8), range(start, start + 1000))
    assert len(json.dumps(votes.saved())) < 10_000


def test_what_was_saved_votes_on():
    looks = [USUAL] * 299 + [picture(3, 8, 9)] + [picture(3, 8, 8, marks=(NAN,))]
    half = counted(looks[:300], len(looks))
    resumed = Votes.restored(json.loads(json.dumps(half.saved())), len(looks))
    resumed.hear(looks[300], [300])
    assert told(resumed) == told(counted(looks)) == [(NAN, NAN, [300]), ("shape", "3×8×9", [299])]
