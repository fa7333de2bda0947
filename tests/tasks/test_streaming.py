"""`imap` takes no more than it needs, gives results while there are more to come, and stops when nobody wants them."""

from __future__ import annotations

import functools
import gc
import itertools
import math
import multiprocessing
from collections.abc import Iterator

import deeds
import errands
import pytest
from deeds import SQUARES, square

from holdfast import Pool

SOON = 20.0


@pytest.fixture
def pool():
    with Pool(2) as pool:
        yield pool
    pool.join()


class Drawn(Iterator[int]):
    """All numbers, and how many of them were taken."""

    def __init__(self, end: float = math.inf) -> None:
        self.count, self.end = 0, end

    def __next__(self) -> int:
        if self.count >= self.end:
            raise StopIteration
        self.count += 1
        return self.count - 1


@pytest.mark.parametrize("method", ["imap", "imap_unordered"])
@pytest.mark.parametrize(("options", "most"), [({}, 8), ({"chunksize": 5}, 40), ({"ahead": 3}, 3)], ids=str)
def test_an_endless_iterable_is_read_no_further_than_is_needed(method, options, most, pool):
    numbers = Drawn()
    results = getattr(pool, method)(square, numbers, **options)
    for taken in range(100):
        next(results)
        assert numbers.count <= taken + most
    assert numbers.count >= 100


class Adds:
    """A function that is an object, and knows how often it was packed."""

    packed = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, other: int) -> int:
        return self.number + other

    def __getstate__(self) -> dict[str, int]:
        Adds.packed += 1
        return vars(self)


def test_a_function_is_sent_once_though_nothing_is_on_the_way_between_two_items(pool):
    before = Adds.packed
    assert list(pool.imap(Adds(3), range(5), ahead=1)) == [3, 4, 5, 6, 7]
    assert Adds.packed == before + 1


def test_a_function_may_be_whatever_can_be_called(pool):
    more = [10]
    for function in (str, Adds(3), functools.partial(pow, 2), lambda number: number + more[0], "x".__add__):
        items = ["a", "b"] if function == "x".__add__ else [1, 2]
        assert list(pool.imap(function, items, ahead=1)) == [function(item) for item in items]


def test_results_come_while_the_iterable_waits_for_them(pool):
    """Each item depends on the result before it."""
    last = [1]

    def doubled() -> Iterator[int]:
        while True:
            yield last[0]

    results = pool.imap(errands.double, doubled(), ahead=1)
    for _ in range(10):
        last[0] = next(results)
    assert last == [2**10]


def test_the_first_results_come_while_a_later_task_runs(pool, tmp_path):
    results = pool.imap(errands.wait_at, [(n, 3, tmp_path / "go") for n in range(5)])
    assert [results.next(SOON) for _ in range(3)] == [0, 1, 4]
    with pytest.raises(multiprocessing.TimeoutError):
        results.next(0.05)
    deeds.make(tmp_path / "go")
    assert [results.next(SOON) for _ in range(2)] == [9, 16]
    with pytest.raises(StopIteration):
        results.next(SOON)
    with pytest.raises(StopIteration):
        next(results)


def test_unordered_results_come_as_they_are_ready(pool, tmp_path):
    """Also when tasks of this kind were short before: none waits behind another while a worker is idle."""
    assert len(list(pool.imap(errands.wait_at, [(n, -1, tmp_path) for n in range(50)]))) == 50
    results = pool.imap_unordered(errands.wait_at, [(n, 0, tmp_path / "go") for n in range(5)])
    assert sorted(results.next(SOON) for _ in range(4)) == [1, 4, 9, 16]
    deeds.make(tmp_path / "go")
    assert list(results) == [0]


@pytest.mark.parametrize("chunksize", [1, 4])
def test_a_dropped_iterator_withdraws_the_rest(chunksize, tmp_path):
    with Pool(1) as pool:
        results = pool.imap(errands.mark_when, [(tmp_path, number) for number in range(100)], chunksize, ahead=40)
        next(results)
        del results
        gc.collect()
        deeds.make(tmp_path / "go")
        assert pool.apply(square, (3,)) == 9  # it waits behind those that were sent
        marked = len(list(tmp_path.glob("[0-9]*")))
        assert marked < 40, "all that were on their way"
        assert pool.map(square, range(10)) == SQUARES
        assert len(list(tmp_path.glob("[0-9]*"))) == marked
    pool.join()


def failing(total: int, at: int) -> Iterator[int]:
    for number in range(total):
        if number == at:
            raise KeyError(at)
        yield number


def heard(results: Iterator[int]) -> list[object]:
    """Each result, or the arguments of its error."""
    found: list[object] = []
    for _ in range(20):
        try:
            found.append(next(results))
        except StopIteration:
            break
        except KeyError as error:
            found.append(error.args)
    return found


def test_an_iterable_that_raises_does_so_in_its_place(pool):
    """As with multiprocessing: results of what it gave before come first."""
    assert heard(pool.imap(square, failing(1, 0))) == [(0,)]
    assert heard(pool.imap(square, failing(10, 3))) == [0, 1, 4, (3,)]
    assert sorted(heard(pool.imap_unordered(square, failing(10, 3))), key=str) == [(3,), 0, 1, 4]


def test_a_map_of_an_iterable_that_raises_raises_that(pool):
    for method in (pool.map, pool.map_async, pool.starmap):
        with pytest.raises(KeyError):
            method(square, failing(10, 3))
    assert pool.map(square, range(10)) == SQUARES


def test_several_iterators_share_the_workers(pool):
    pairs = zip(pool.imap(square, itertools.count()), pool.imap(abs, itertools.count()))
    assert list(itertools.islice(pairs, 30)) == [(number * number, number) for number in range(30)]


def test_ahead_is_a_number_above_0(pool):
    with pytest.raises(ValueError, match="ahead should be 1 or more"):
        pool.imap(square, [1], ahead=0)
