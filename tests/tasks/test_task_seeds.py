"""Random numbers of a pool's calls: they follow from the seed and the number of the call, and from nothing else."""

from __future__ import annotations

import collections
import functools
import math
import os
import random
import re

import errands
import numpy
import pytest
import torch

from holdfast import Executor, Pool
from holdfast._worker.drawing import cannot_draw

ITEMS = 24


def drawn(processes: int = 2, **options: object) -> list[object]:
    with Pool(processes, seed=7, **options) as pool:
        return pool.map(errands.draw, range(ITEMS))


@pytest.fixture(scope="module")
def expected():
    return drawn(1)


def test_the_draws_are_the_same_for_any_number_of_workers(expected):
    assert drawn(2) == drawn(4) == expected
    assert len(set(expected)) == ITEMS
    assert all(len({row[place] for row in expected}) == ITEMS for place in range(3))


def test_the_draws_are_the_same_by_any_method_and_chunksize(expected):
    methods = [
        lambda pool: pool.map(errands.draw, range(ITEMS), 1),
        lambda pool: pool.map(errands.draw, range(ITEMS), 7),
        lambda pool: list(pool.imap(errands.draw, range(ITEMS), 5)),
        lambda pool: pool.starmap(errands.draw, [(number,) for number in range(ITEMS)], 2),
        lambda pool: [result.get() for result in [pool.apply_async(errands.draw) for _ in range(ITEMS)]],
        lambda pool: pool.map(errands.draw, range(9)) + pool.map(errands.draw, range(9, ITEMS)),
    ]
    for method in methods:
        with Pool(2, seed=7) as pool:
            assert method(pool) == expected
    with Executor(2, seed=7) as executor:
        assert list(executor.map(errands.draw, range(ITEMS))) == expected
    with Executor(2, seed=7) as executor:
        assert [future.result() for future in [executor.submit(errands.draw) for _ in range(ITEMS)]] == expected


@pytest.mark.parametrize("chunksize", [1, 6])
@pytest.mark.parametrize("how", [errands.draw_or_die, errands.draw_or_fail])
def test_the_draws_are_the_same_when_a_call_is_tried_again(how, chunksize, expected, tmp_path):
    with Pool(2, seed=7, retries=1) as pool:
        assert pool.starmap(how, [(n, 13, tmp_path / "flag") for n in range(ITEMS)], chunksize) == expected
        assert [fault.index for fault in pool.faults] == [13]


def test_the_draws_are_the_same_when_workers_are_replaced(expected):
    with Pool(2, seed=7, maxtasksperchild=1) as pool:
        assert pool.map(errands.draw, range(ITEMS), 3) == expected


def test_two_pools_differ_and_the_seed_of_torch_makes_them_the_same_again():
    def two() -> list[object]:
        results: list[object] = []
        for _ in range(2):
            with Pool(1) as pool:
                results.append(pool.map(errands.draw, range(3)))
        return results

    one, other = two()
    assert one != other
    state = torch.get_rng_state()
    try:
        torch.manual_seed(torch.initial_seed() + 1)
        different, _ = two()
        assert different not in (one, other)
    finally:
        torch.set_rng_state(state)


MADE = """
import torch
from holdfast import Pool
import errands
torch.manual_seed(3)
for _ in range(2):
    with Pool(1) as pool:
        print(pool.map(errands.draw, range(3)))
"""


@pytest.mark.slow
def test_a_program_that_seeds_torch_can_be_run_again(tmp_path):
    from callers import HEAD, run

    first, second = run(tmp_path, HEAD + MADE), run(tmp_path, HEAD + MADE)
    assert first == second
    assert len(set(first.splitlines())) == 2


def test_seed_false_leaves_random_state_alone():
    with Pool(1, numpy.random.seed, (5,), seed=False) as pool:
        together = [row[1] for row in pool.map(errands.draw, range(4))]
    assert together == numpy.random.RandomState(5).rand(4).tolist()


def test_the_state_of_the_asking_process_is_not_touched():
    random.seed(1)
    numpy.random.seed(1)
    before = random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    with Pool(1) as pool:
        pool.map(errands.draw, range(3))
    assert before == (random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist())


# -- who can draw ----------------------------------------------------------------------------------

PERCENT = 100
TABLE = {"a": 1}


def plain(number):
    return number * PERCENT + math.sqrt(abs(number))


def calls_plain(number):
    return sorted(plain(each) for each in range(number))


def with_default(number, base=10, *, name="x"):
    return f"{name}{number:{base}}"


def with_import(number):
    import json

    return json.dumps(number)


def with_text(text):
    return re.sub("a", lambda found: found[0].upper(), os.path.basename(text.strip()))


def closure(value):
    return lambda number: number + value


def from_random(number):
    return random.random()


def calls_random(number):
    return from_random(number) + 1


def imports_random(number):
    import random as chance

    return chance.random()


def imports_from_random(number):
    from random import random as chance

    return chance()


def from_numpy(number):
    return numpy.random.rand()


def inner(number):
    return [each for each in (lambda: torch.rand(1))()]  # noqa: C416


def with_drawing_default(number, draw=random.random):
    return draw()


def with_drawing_keyword(number, *, draw=random.random):
    return draw()


def evaluates(text):
    return eval(text)


def looks_up(name):
    return getattr(os, name)


def unknown(number):
    return not_defined_yet(number)  # noqa: F821


def reads_a_table(name):
    return TABLE[name]


class Callable:
    def __call__(self, number):
        return number

    def method(self, number):
        return number


def makes_an_object(number):
    return Callable()(number)


CANNOT = [
    *(abs, len, str, int, math.sqrt, os.getpid, collections.Counter),
    *(plain, calls_plain, with_default, with_import, with_text, closure(3), closure("x"), closure(plain)),
    *(lambda number: number**2, lambda: None, functools.partial(plain, 3), functools.partial(closure, value=1)),
]
CAN = [
    *(random.random, random.Random(3).random, numpy.random.rand, torch.rand, torch.add, numpy.add, print.__self__),
    *(from_random, calls_random, imports_random, imports_from_random, from_numpy, inner),
    *(with_drawing_default, with_drawing_keyword, evaluates, looks_up, unknown, reads_a_table, makes_an_object),
    *(Callable(), Callable().method, Callable, closure(from_random), closure(random), closure([1]), "text".upper),
    *(functools.partial(plain, numpy), functools.partial(from_random), functools.partial(plain, number=from_random)),
    *(eval, exec, __import__, getattr, functools.lru_cache(from_random), [].append, errands.draw),
]


def test_it_is_seen_that_a_function_cannot_draw():
    assert [function for function in CANNOT if not cannot_draw(function)] == []


def test_a_function_that_may_draw_is_never_taken_for_one_that_cannot():
    assert [function for function in CAN if cannot_draw(function)] == []


def test_an_argument_that_draws_has_its_own_numbers_too():
    """The function does not draw; what it is given does."""
    with Pool(1, seed=7) as pool:
        one = pool.map(_call, [errands.draw] * 4)
    with Pool(2, seed=7) as pool:
        assert pool.map(_call, [errands.draw] * 4, 1) == one
    assert len(set(one)) == 4


def _call(function):
    return function()
