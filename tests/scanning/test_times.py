"""A sample is slow when it takes ten times the median, and not less than a second."""

from __future__ import annotations

import json

import pytest

from holdfast.scanning.times import SLOWEST, Slow, Times, binned


def timed(*seconds: float) -> Times:
    times = Times()
    for position, each in enumerate(seconds):
        times.add(binned([each]), [Slow(position, each, 0.0)])
    return times


def slow(times: Times) -> list[int]:
    return [one.position for one in times.slow()]


@pytest.mark.parametrize(
    ("usual", "one", "is_slow"),
    [
        (0.001, 1.2, True),
        (0.001, 0.9, False),  # a thousand times the median, and still nothing to wait for
        (0.5, 6.0, True),
        (0.5, 4.0, False),  # all of them take long
    ],
)
def test_slow_is_slow_for_this_data_set(usual, one, is_slow):
    assert slow(timed(*[usual] * 50, one)) == ([50] if is_slow else [])


def test_what_came_before_the_median_was_known_is_judged_by_it():
    assert slow(timed(*[2.0] * 3, *[0.001] * 50)) == [0, 1, 2]
    assert slow(timed(1.5, *[0.5] * 50)) == []


def test_the_slowest_are_kept_whatever_they_are():
    times = timed(*(0.001 * (1 + number % 97) for number in range(500)))
    kept = times.slowest()
    assert len(kept) == SLOWEST
    assert [one.seconds for one in kept] == sorted((0.001 * (1 + n % 97) for n in range(500)), reverse=True)[:SLOWEST]


def test_quantiles_are_right_to_a_tenth():
    times = timed(*(0.001 * number for number in range(1, 1001)))
    assert times.quantile(0.5) == pytest.approx(0.5, rel=0.1)
    assert times.quantile(0.99) == pytest.approx(0.99, rel=0.1)


def test_what_was_saved_goes_on():
    times = timed(*[0.001] * 50, 3.0, 0.2)
    again = Times.restored(json.loads(json.dumps(times.saved())))
    assert (slow(again), again.slowest(), again.bins) == (slow(times), times.slowest(), times.bins)
    assert sum(count for _, _, count in again.histogram()) == 52
