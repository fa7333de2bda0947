"""A sample that fails for a while is tried again, off the critical path; the batch is as if nothing had happened."""

from __future__ import annotations

import pytest
from trials import CREWS, Noisy, OwnNoise, contents, indices, outcomes, trial

from holdfast import Retry, Skip, WorkerDied, WorkerStalled
from holdfast.testing import DiesAt, Faulty, HangsAt, RaisesAt, StopsAt


class Flaky:
    """Sample ``index`` fails the first ``times`` times. A file remembers, and lists every sample that was asked for."""

    def __init__(self, path, index: int = 1, times: int = 2, dataset=None):
        self.path, self.index, self.times, self.dataset = path, index, times, dataset or Noisy()

    def asked(self) -> list[int]:
        return [int(line) for line in self.path.read_text().split()] if self.path.exists() else []

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index):
        with open(self.path, "a") as file:
            file.write(f"{index}\n")
        if index == self.index and self.asked().count(index) <= self.times:
            raise OSError(5, "Input/output error", "/mnt/1.jpg")
        return self.dataset[index]


@pytest.mark.parametrize("crew", CREWS)
def test_a_batch_that_was_retried_is_bit_identical(crew, tmp_path):
    dataset = OwnNoise() if crew == "threads" else Noisy()
    loader = trial(Flaky(tmp_path / "asked", 9, dataset=dataset), crew, on_error=Retry(3, on=OSError, backoff=0.01))
    assert contents(loader) == contents(trial(dataset, crew))
    assert [(each.action, each.attempts, each.batch) for each in loader.faults] == [
        ("tried again", 1, 2),
        ("tried again", 2, 2),
    ]
    assert {(each.index, each.error.errno, each.where) for each in loader.faults} == {(9, 5, "/mnt/1.jpg")}


@pytest.mark.parametrize("crew", ["processes", "threads"])
def test_others_are_loaded_while_one_waits_and_order_is_kept(crew, tmp_path):
    dataset = Flaky(tmp_path / "asked", dataset=OwnNoise(40) if crew == "threads" else Noisy(40))
    loader = trial(dataset, crew, on_error=Retry(2, backoff=lambda attempt: 1.0))
    assert indices(loader) == [list(range(first, first + 4)) for first in range(0, 40, 4)]
    asked = dataset.asked()
    last_try = len(asked) - asked[::-1].index(1)
    assert set(asked[:last_try]) == set(range(40))  # all of the epoch, before the first batch was there


@pytest.mark.parametrize("crew", CREWS)
def test_what_fails_too_often_is_for_the_next_policy(crew, tmp_path):
    dataset = Flaky(tmp_path / "asked", 9, times=100, dataset=OwnNoise() if crew == "threads" else Noisy())
    loader = trial(dataset, crew, on_error=Retry(2, backoff=0) | Skip())
    found = indices(loader)
    assert found[2][0::2] == [8, 10]
    assert [(each.action, each.attempts) for each in loader.faults] == [
        ("tried again", 1),
        ("tried again", 2),
        ("skipped", 3),
    ]


def test_the_last_error_is_raised_when_there_is_no_next_policy(tmp_path):
    loader = trial(Flaky(tmp_path / "asked", 9, times=100), on_error=Retry(1, backoff=0))
    found = outcomes(loader)
    assert isinstance(found[2], OSError)
    assert [each.action for each in loader.faults] == ["tried again", "raised"]


def test_only_what_is_to_be_retried_is(tmp_path):
    loader = trial(Faulty(Noisy(), RaisesAt(9, lambda: KeyError("label"))), on_error=Retry(3, on=OSError))
    assert isinstance(outcomes(loader)[2], KeyError)
    assert [each.action for each in loader.faults] == ["raised"]


@pytest.mark.parametrize(
    ("on_error", "deaths"),
    [(Retry(1) | Skip(), 2), (Retry(3, backoff=0) | Skip(), 4), (Retry(3, on=OSError) | Skip(), 2)],
)
def test_a_sample_that_ends_workers_is_tried_in_new_ones(on_error, deaths):
    loader = trial(Faulty(Noisy(), DiesAt(9)), on_error=on_error)
    assert indices(loader)[2][0::2] == [8, 10]
    (fault,) = loader.faults.filter(action="skipped")
    assert fault.attempts == deaths
    assert deaths - 1 <= loader.restarts <= deaths  # the last one may still be due when the epoch is over
    assert isinstance(fault.error, WorkerDied)
    assert f"tried {deaths} times" in str(fault.error)
    assert len(loader.faults.filter(kind="death")) == deaths


@pytest.mark.parametrize("kind", [HangsAt, StopsAt])
def test_a_stall_that_passes_costs_nothing(kind):
    loader = trial(Faulty(Noisy(), kind(9, once=True)), on_error=Retry(1, on=WorkerStalled, backoff=0), stall_timeout=1)
    assert contents(loader) == contents(trial(Noisy(), "trainer"))
    (fault,) = loader.faults
    assert (fault.kind, fault.action, fault.index) == ("stall", "tried again", 9)


def test_two_that_fail_in_one_batch_are_tried_together(tmp_path):
    """One waits, the other is bad for good: the batch is loaded once more, with both answers."""
    dataset = Faulty(Flaky(tmp_path / "asked", 9, times=1), RaisesAt(11, lambda: ValueError("bad")))
    loader = trial(dataset, on_error=Retry(1, on=OSError, backoff=0) | Skip(on=ValueError))
    assert indices(loader)[2][:3] == [8, 9, 10]
    assert [(each.index, each.action) for each in loader.faults] == [(9, "tried again"), (11, "skipped")]
    assert (tmp_path / "asked").read_text().split().count("8") == 2
