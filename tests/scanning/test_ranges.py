"""Ranges are a set of numbers."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from holdfast.scanning.ranges import Ranges

RUNS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda run: (run[0], run[0] + run[1])))


@given(RUNS)
def test_it_holds_what_was_added_in_runs_that_do_not_touch(runs):
    ranges, numbers = Ranges(runs), {number for start, stop in runs for number in range(start, stop)}
    assert {number for number in range(100) if number in ranges} == numbers
    assert len(ranges) == len(numbers)
    found = list(ranges)
    assert all(stop < start for (_, stop), (start, _) in pairwise(found))


@given(RUNS, st.integers(0, 80))
def test_gaps_are_the_rest(runs, end):
    ranges = Ranges(runs)
    gaps = [number for start, stop in ranges.gaps(end) for number in range(start, stop)]
    assert gaps == [number for number in range(end) if number not in ranges]
