"""Samples that cannot be one batch: the culprit is named, and with a policy found by trying and left out."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
import torch
from torch.utils.data import default_collate
from trials import CREWS, Noisy, OwnNoise, indices, outcomes, trial

from holdfast import AllSamplesBad, Replace, Retry, Skip, TooManyFaults
from holdfast.errors import CannotSend, NoneSample, UnequalSamples
from holdfast.testing import Faulty, GivesAt, RaisesAt


class Tensors:
    """Sample n is ``n`` four times, and in another shape for those that are ``odd``."""

    def __init__(self, *odd: int) -> None:
        self.odd = odd
        self.paths = [f"/data/{n}.jpg" for n in range(24)]

    def __len__(self):
        return 24

    def __getitem__(self, index):
        return torch.full((2, 2) if index in self.odd else (4,), index)


def firsts(loader: Any) -> list[list[int]]:
    return [batch.reshape(len(batch), -1)[:, 0].tolist() for batch in loader]


def error_of(loader: Any, number: int = 2) -> Any:
    found: list[Any] = []
    batches = iter(loader)
    while len(found) <= number:
        try:
            found.append(next(batches))
        except Exception as error:
            found.append(error)
    return found[number]


# -- what default_collate refuses --------------------------------------------------------------


@pytest.mark.parametrize("crew", CREWS)
def test_unequal_shapes_name_both_samples_and_the_way_out(crew):
    error = error_of(trial(Tensors(9), crew))
    assert isinstance(error, UnequalSamples)
    for words in ("samples 8 and 9", "/data/8.jpg", "/data/9.jpg", "on_error=", "pads"):
        assert words in str(error)


@pytest.mark.parametrize("crew", CREWS)
def test_the_odd_one_is_left_out(crew):
    loader = trial(Tensors(9, 21, 22), crew, on_error="skip")
    found = firsts(loader)
    assert [len(batch) for batch in found] == [4] * 6
    assert (found[2][0::2], found[5][0::3]) == ([8, 10], [20, 23])
    assert {each.index: each.where for each in loader.faults} == {n: f"/data/{n}.jpg" for n in (9, 21, 22)}
    assert {each.kind for each in loader.faults} == {"batch"}


@pytest.mark.parametrize("crew", CREWS)
def test_none_is_an_error_that_names_the_sample_and_the_others_are_delivered(crew):
    dataset = Faulty(Tensors(), GivesAt(9))
    error = error_of(trial(dataset, crew))
    assert isinstance(error, NoneSample)
    assert 'on_error="skip"' in str(error)
    loader = trial(dataset, crew, on_error="skip")
    assert firsts(loader)[2][0::2] == [8, 10]
    assert isinstance(loader.faults[0].error, NoneSample)


# -- a collate function of the user's own ------------------------------------------------------


def picky(samples: list[Any]) -> Any:
    if any(sample[0] in (9, 10) for sample in samples):
        raise ValueError("cannot pad")
    return default_collate(samples)


def noisy(crew: str, length: int = 24) -> Noisy:
    return OwnNoise(length) if crew == "threads" else Noisy(length)


@pytest.mark.parametrize("crew", CREWS)
def test_an_error_of_collate_names_the_batch_and_with_a_policy_the_culprits(crew):
    error = error_of(trial(noisy(crew), crew, collate_fn=picky))
    assert str(error) == "cannot pad"
    assert "batch 2, dataset indices 8, 9, 10, 11" in error.__notes__[0]
    loader = trial(noisy(crew), crew, collate_fn=picky, on_error="skip")
    assert indices(loader)[2][0::3] == [8, 11]
    assert [(each.index, each.action) for each in loader.faults] == [(9, "skipped"), (10, "skipped")]


@pytest.mark.parametrize("crew", CREWS)
@pytest.mark.parametrize("on_error", ["skip", Retry(2, backoff=0) | Skip(), Replace((0, torch.zeros(1), 0.0, 0.0))])
def test_a_collate_function_that_always_fails_is_raised(crew, on_error):
    def broken(samples):
        raise ValueError("always")

    loader = trial(noisy(crew), crew, collate_fn=broken, on_error=on_error)
    found = outcomes(loader)
    assert [str(error) for error in found] == ["always"] * 6
    assert not loader.faults.bad


@pytest.mark.parametrize("crew", CREWS)
def test_nor_is_one_tried_forever_that_fails_with_whatever_samples(crew):
    """It takes any three of them, and never four: each seems to be the fourth."""

    def three_at_most(samples):
        if len(samples) > 3:
            raise ValueError("too many")
        return default_collate(samples)

    loader = trial(noisy(crew, 1000), crew, collate_fn=three_at_most, on_error="skip")
    assert str(error_of(loader, 0)) == "too many"
    assert 0 in [each.batch for each in loader.faults.filter(action="raised")]


@pytest.mark.parametrize("crew", CREWS)
def test_a_value_that_does_not_go_with_the_others_is_raised(crew):
    found = outcomes(trial(Tensors(9), crew, on_error=Replace(torch.zeros(5)), sampler=range(8, 12)))
    assert isinstance(found[0], RuntimeError)
    assert "9" in str(found[0])


@pytest.mark.parametrize("crew", CREWS)
def test_stop_iteration_out_of_collate_does_not_end_the_epoch(crew):
    def ends(samples):
        if samples[0][0] == 8:
            return next(iter(()))
        return default_collate(samples)

    found = outcomes(trial(noisy(crew), crew, collate_fn=ends))
    assert len(found) == 6
    assert "collate_fn raised StopIteration" in str(found[2])


def test_what_cannot_be_sent_is_found_and_left_out():
    def as_they_are(samples):
        return [torch.tensor([getattr(sample, "index", sample) for sample in samples]), samples]

    class Locked:
        def __init__(self):
            self.index, self.lock = 9, threading.Lock()

    dataset = Faulty(range(24), GivesAt(9, Locked))
    assert isinstance(error_of(trial(dataset, collate_fn=as_they_are)), CannotSend)
    loader = trial(dataset, collate_fn=as_they_are, on_error="skip")
    assert indices(loader)[2][0::2] == [8, 10]
    (fault,) = loader.faults
    assert (fault.index, type(fault.error)) == (9, CannotSend)
    assert "lock" in str(fault.error)


# -- nothing is left ---------------------------------------------------------------------------


@pytest.mark.parametrize("crew", CREWS)
def test_a_batch_of_which_nothing_is_left_is_an_error_that_lists_all_of_it(crew):
    faults = [RaisesAt(n, lambda: OSError(2, "No such file", "/data/gone")) for n in range(8, 12)]
    loader = trial(Faulty(noisy(crew), *faults), crew, on_error=Skip(refill=False))
    found = outcomes(loader)
    error = found.pop(2)
    assert isinstance(error, AllSamplesBad)
    assert isinstance(error.__cause__, OSError)
    assert [each.index for each in error.faults] == [8, 9, 10, 11]
    for words in ("dataset indices 8, 9, 10, 11", "sample 10", "/data/gone", "Skip(refill=True)"):
        assert words in str(error)
    assert [len(batch) for batch in found] == [4] * 5
    assert [each.action for each in loader.faults] == ["skipped"] * 3 + ["raised"]


@pytest.mark.parametrize("crew", CREWS)
def test_a_batch_of_bad_ones_is_filled_with_others(crew):
    faults = [RaisesAt(n, lambda: OSError("gone")) for n in range(8, 12)]
    loader = trial(Faulty(noisy(crew), *faults), crew, on_error="skip")
    found = indices(loader)
    assert len(set(found[2]) - {8, 9, 10, 11}) == 4
    assert [len(batch) for batch in found] == [4] * 6


def test_when_every_sample_is_bad_it_is_said_and_ends():
    loader = trial(Faulty(Noisy(8), *(RaisesAt(n, lambda: OSError("gone")) for n in range(8))), on_error="skip")
    assert {type(error) for error in outcomes(loader)} == {AllSamplesBad}


@pytest.mark.parametrize("crew", CREWS)
def test_refill_can_be_turned_off(crew):
    loader = trial(Faulty(noisy(crew), RaisesAt(9, lambda: OSError("gone"))), crew, on_error=Skip(refill=False))
    assert indices(loader)[2] == [8, 10, 11]


@pytest.mark.parametrize("crew", CREWS)
@pytest.mark.parametrize("limit", [2, 0.01])
def test_more_than_the_limit_is_an_error_that_lists_them(crew, limit):
    """Also when they are all in one batch."""
    faults = [RaisesAt(n, lambda: OSError("gone")) for n in (8, 9, 10)]
    loader = trial(Faulty(noisy(crew), *faults), crew, on_error=Skip(limit=limit))
    error = outcomes(loader)[2]
    assert isinstance(error, TooManyFaults)
    assert isinstance(error.__cause__, OSError)
    assert "sample 9 of batch 2: OSError: gone; " in str(error)


# -- all at once -------------------------------------------------------------------------------


class AllAtOnce(Noisy):
    """Gives a whole batch when it is asked for one."""

    def __init__(self, fail: Any) -> None:
        super().__init__()
        self.fail = fail

    def __getitems__(self, wanted):
        return [self[index] for index in wanted if index != 9 or self.fail()]


def fails() -> bool:
    raise OSError("gone")


@pytest.mark.parametrize("crew", ["trainer", "processes"])
def test_a_data_set_that_gives_batches_is_asked_for_single_samples_to_find_the_bad_one(crew):
    error = error_of(trial(AllAtOnce(fails), crew))
    assert "dataset indices 8, 9, 10, 11" in error.__notes__[0]
    loader = trial(AllAtOnce(fails), crew, on_error="skip")
    assert indices(loader)[2][0::2] == [8, 10]
    assert [each.index for each in loader.faults] == [9]


def test_a_sample_that_ends_a_worker_is_found_in_a_data_set_that_gives_batches():
    loader = trial(AllAtOnce(os.abort), on_error="skip")
    assert indices(loader)[2][0::2] == [8, 10]
    (fault,) = loader.faults.filter(action="skipped")
    assert (fault.kind, fault.index) == ("death", 9)


def test_a_death_behind_a_sample_that_raises_is_blamed_on_the_right_one():
    """The rest of a batch is tried when one sample raised: who dies then is not the one that raised."""
    dataset = Faulty(Noisy(), RaisesAt(8, lambda: OSError("gone")), RaisesAt(10, os.abort))
    loader = trial(dataset, on_error="skip")
    assert indices(loader)[2][1::2] == [9, 11]
    assert {each.index: each.kind for each in loader.faults.filter(action="skipped")} == {8: "exception", 10: "death"}


# -- whose fault -------------------------------------------------------------------------------


class Misspelt(Noisy):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def __getitem__(self, index):
        if index == 9:
            exec(self.how, {"self": self})
        return super().__getitem__(index)


@pytest.mark.parametrize("crew", CREWS)
@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("pathes", NameError),
        ("import nowhere", ImportError),
        ("self.pathes", AttributeError),
        ("import os; os.pathes", AttributeError),
        ("raise NotImplementedError", NotImplementedError),
    ],
)
def test_errors_of_the_program_are_never_skipped(crew, how, kind):
    loader = trial(Misspelt(how), crew, on_error=Retry(3) | Skip(), batch_size=8, sampler=range(8, 16))
    (error,) = outcomes(loader)[:1]
    assert isinstance(error, kind)
    assert [(each.index, each.action) for each in loader.faults] == [(9, "raised")]
