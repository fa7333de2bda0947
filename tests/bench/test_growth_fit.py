import pytest

from bench.contest import Contest, Outcome, Result
from bench.growth import costs, costs_by_contender

SIZES = (1, 4, 16, 64, 256, 1024)


def rates(per_batch, per_sample):
    return {size: 1 / (per_batch + size * per_sample) for size in SIZES}


def test_points_on_a_line_give_that_line():
    found = costs(rates(100e-6, 3e-6))
    assert found.per_batch == pytest.approx(100e-6)
    assert found.per_sample == pytest.approx(3e-6)
    assert found.off == pytest.approx(0, abs=1e-9)


def test_a_large_batch_that_is_off_does_not_decide_on_the_cost_of_a_batch():
    disturbed = rates(100e-6, 3e-6)
    disturbed[1024] /= 1.2
    found = costs(disturbed)
    # By least squares of absolute terms, the cost of a batch would come out below zero here.
    assert found.per_batch == pytest.approx(100e-6, rel=0.1)
    assert found.per_sample == pytest.approx(3e-6, rel=0.2)
    assert 0.05 < found.off < 0.2


def test_no_cost_is_negative():
    assert costs({1: 1000, 2: 400}).per_batch == 0
    assert costs({1: 100, 2: 110, 4: 120}).per_sample == 0


def test_one_point_is_no_line():
    with pytest.raises(ValueError, match="two points"):
        costs({1: 1000})


def test_costs_are_of_the_contenders_that_have_two_points_on_the_curve():
    def outcome(curve, at, **figures):
        results = [Result(name, figures=list(values)) for name, values in figures.items()]
        return Outcome(Contest("", "", "batches/s", "", tuple(figures), curve=curve, at=at), results)

    found = costs_by_contender(
        [
            outcome("batch size", 1, holdfast=(5000, 9000, 10_000), peer=(900, 1000), dash=()),
            outcome("batch size", 101, holdfast=(5000,), peer=(500,), dash=(10,)),
            outcome("workers", 4, holdfast=(1,)),
        ]
    )
    assert list(found) == ["holdfast", "peer"]
    assert found["holdfast"].per_sample == pytest.approx(1e-6)
    assert found["peer"].per_batch == pytest.approx(0.99e-3)
