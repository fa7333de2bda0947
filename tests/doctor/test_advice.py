"""What the figures of the steps lead to: how many workers, what holds them back, and what grows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.doctor.advice import advice
from holdfast.doctor.allotment import Allotment
from holdfast.doctor.bounds import Hold, growth, held
from holdfast.doctor.step import Step

MIB = 1 << 20
ALLOTTED = Allotment(cpus=4, told="4 CPUs", memory=1000 * MIB)
USUAL = Step(
    workers=0,
    start=0.1,
    rate=100.0,
    samples=150,
    seconds=1.5,
    cpu=0.01,
    trainer_cpu=0.0001,
    busy=1.0,
    queued=0.0,
    uss=20 * MIB,
    pss=40 * MIB,
    descriptors=20,
    memory_grown=(0, 0),
    descriptors_grown=(0, 0),
)


def steps(rates: dict[int, float], **changes: Any) -> list[Step]:
    return [replace(USUAL, workers=workers, rate=rate, **changes) for workers, rate in rates.items()]


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({0: 100, 1: 100, 2: 200, 4: 400}, 4),
        ({0: 100, 1: 100, 2: 196, 4: 200}, 2),  # within 5 % of the best
        ({0: 100, 1: 100, 2: 180, 4: 200}, 4),
        ({0: 100, 1: 100, 2: 200, 4: 400, 8: 700}, 4),  # there are four CPUs
        ({1: 100, 2: 90}, 1),
    ],
)
def test_as_few_workers_as_are_as_good_as_the_best(rates, expected):
    assert advice(steps(rates), ALLOTTED).workers == expected


def test_more_workers_than_cpus_where_they_mostly_wait():
    found = advice(steps({0: 100, 1: 100, 2: 200, 4: 400, 8: 700}, busy=0.1), ALLOTTED)
    assert (found.workers, found.reasons[-1]) == (8, "more than 8 were not measured")


def test_none_where_handing_over_costs_more_than_loading():
    found = advice(steps({0: 50_000, 1: 40_000, 2: 45_000}, trainer_cpu=30e-6), ALLOTTED)
    assert found.workers == 0
    assert "20 µs" in found.reasons[0]
    assert "30 µs" in found.reasons[0]


def test_a_rate_that_is_better_without_workers_is_said_to_be_at_the_trainers_cost():
    found = advice(steps({0: 50_000, 1: 40_000, 2: 30_000}, trainer_cpu=10e-6), ALLOTTED)
    assert found.workers == 1
    assert "without workers 50,000, but then a sample takes 20 µs of the trainer's time, and not 10 µs" in found.reasons


def test_no_more_than_there_is_memory_for():
    large = [replace(step, uss=step.workers * 300 * MIB) for step in steps({0: 100, 1: 100, 2: 200, 4: 400})]
    found = advice(large, ALLOTTED)
    assert found.workers == 2
    assert any("4 hold 1.2 GiB for themselves" in reason for reason in found.reasons)


def test_rates_of_a_busy_machine_are_said_to_vary():
    quiet, *others = steps({1: 200, 2: 190})
    found = advice([quiet, *(replace(step, queued=0.5) for step in others)], ALLOTTED)
    assert found.workers == 1
    assert "waited 50% of their time" in found.reasons[-1]
    assert "vary" not in " ".join(advice([quiet, *others], ALLOTTED).reasons)


def test_nothing_is_advised_where_nothing_was_measured():
    assert advice(steps({0: 100}), ALLOTTED).workers is None


@pytest.mark.parametrize(
    ("changes", "asked", "by"),
    [
        ({}, 0, Hold.CPU),
        ({"busy": 0.2}, 0, Hold.WAITING),
        ({"busy": 0.2, "queued": 0.7}, 0, Hold.CPU),  # the machine was busy otherwise
        ({"collating": 0.6}, 0, Hold.COLLATING),
        ({"queued": 0.5, "busy": 0.5}, 8, Hold.OVERSUBSCRIBED),
        ({"queued": 0.5, "busy": 0.5}, 4, Hold.CPU),
    ],
)
def test_what_holds_loading_back(changes, asked, by):
    found = held(steps({0: 100, 4: 300, 8: 300}, **changes), ALLOTTED, asked)
    assert found is not None
    assert found.by is by


@pytest.mark.parametrize(
    ("changes", "checks"),
    [
        ({"memory_grown": (6 * MIB, 6 * MIB)}, ["HD15"]),
        ({"memory_grown": (12 * MIB, 1 * MIB)}, []),  # it comes to an end
        ({"memory_grown": (1 * MIB, 1 * MIB)}, []),
        ({"memory_grown": (-6 * MIB, 12 * MIB)}, []),
        ({"descriptors_grown": (10, 12)}, ["HD13"]),
        ({"descriptors_grown": (2, 2)}, []),
    ],
)
def test_what_only_ever_grows_is_a_leak(changes, checks):
    found = growth(steps({0: 100, 1: 100}, **changes), 1000 * MIB, ["dataset.cache"])
    assert [symptom.check for symptom in found] == checks
    assert all(symptom.where == "dataset.cache" for symptom in found)


def test_memory_that_grows_in_one_step_of_two_or_within_a_few_samples_is_chance():
    one, other = steps({0: 100, 1: 100}, memory_grown=(6 * MIB, 6 * MIB))
    assert growth([one, other], 1000 * MIB)
    assert not growth([one, replace(other, memory_grown=(0, 0))], 1000 * MIB)
    assert not growth([replace(one, samples=8), replace(other, samples=8)], 1000 * MIB)
