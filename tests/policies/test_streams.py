"""Iterable data sets: a stream goes one way only, and what was decided about an item holds for the epoch."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import torch
from torch.utils.data import default_collate, get_worker_info
from trials import CREWS, Generated, Items, Stream, contents, indices, outcomes, trial

from holdfast import (
    DataLoader,
    Quarantine,
    Replace,
    Retry,
    Skip,
    StreamLost,
    TooManyFaults,
    WorkerDied,
    WorkerStalled,
)
from holdfast.testing import DiesAt, HangsAt, Once, RaisesAt

BAD = (5, 6, 13)
VALUE = (99, torch.zeros(1), 0.0)


def faults(*more: Any) -> tuple[Any, ...]:
    return (*(RaisesAt(number, lambda: OSError("bad")) for number in BAD), *more)


def flat(batches: list[list[int]]) -> list[int]:
    return sorted(number for batch in batches for number in batch)


GOOD = [number for number in range(24) if number not in BAD]


# -- an iterator that goes on ------------------------------------------------------------------


@pytest.mark.parametrize("crew", CREWS)
def test_items_that_raise_are_passed_over_and_those_behind_them_take_their_place(crew):
    loader = trial(Stream(24, *faults()), crew, on_error="skip")
    found = indices(loader)
    assert flat(found) == GOOD
    assert all(len(batch) == 4 for batch in found[:4])
    assert sorted((each.seat or 0, each.item) for each in loader.faults) == (
        [(0, 5), (0, 6), (0, 13)] if crew == "trainer" else [(0, 3), (1, 2), (1, 6)]
    )
    assert {(each.action, each.kind, str(each.error), each.attempts) for each in loader.faults} == {
        ("skipped", "exception", "bad", 1)
    }
    assert loader.faults.seen >= len(GOOD)


@pytest.mark.parametrize("crew", CREWS)
def test_a_value_takes_their_place(crew):
    loader = trial(Stream(24, *faults()), crew, on_error=Replace(VALUE))
    assert flat(indices(loader)) == [*GOOD, 99, 99, 99]
    assert {each.action for each in loader.faults} == {"replaced"}


@pytest.mark.parametrize("crew", CREWS)
def test_an_iterator_that_stays_where_it_is_can_be_tried_again(crew):
    once = [RaisesAt(number, lambda: OSError("bad"), once=True) for number in BAD]
    loader = trial(Stream(24, *once, stays=True), crew, on_error=Retry(2, backoff=0.01))
    assert flat(indices(loader)) == list(range(24))
    assert [each.action for each in loader.faults] == ["tried again"] * 3


@pytest.mark.parametrize("crew", CREWS)
def test_retries_of_an_item_come_to_an_end(crew):
    loader = trial(Stream(24, RaisesAt(1, lambda: OSError("bad")), stays=True), crew, on_error=Retry(2, backoff=0))
    batches = iter(loader)
    if crew != "trainer":
        next(batches)  # of the other worker
    with pytest.raises(OSError, match="bad"):
        next(batches)
    told = [(each.item, each.attempts, each.action) for each in loader.faults][:3]
    item = 1 if crew == "trainer" else 0
    assert told == [(item, 1, "tried again"), (item, 2, "tried again"), (item, 3, "raised")]


@pytest.mark.parametrize("crew", CREWS)
def test_raised_in_the_place_of_the_batch_and_the_stream_goes_on(crew):
    loader = trial(Stream(24, *faults()), crew)
    found = outcomes(loader)
    errors = [each for each in found if isinstance(each, Exception)]
    assert [str(error) for error in errors] == ["bad"] * 3
    assert [each.action for each in loader.faults] == ["raised"] * 3
    told = {(each.seat, each.item) for each in loader.faults}
    notes = "\n".join(error.__notes__[0] for error in errors)
    if crew == "trainer":
        assert told == {(None, 5), (None, 6), (None, 13)}
        assert all(f"while it loaded item {item} of batch" in notes for item in (5, 6, 13))
        expected = [*range(4), *range(7, 11), *range(14, 24)]
    else:
        assert told == {(0, 3), (1, 2), (1, 6)}
        assert all(f"while it loaded item {item} of worker {seat} of batch" in notes for seat, item in told)
        expected = sorted([*range(8, 24, 2), *range(15, 24, 2)])
    assert flat([each for each in found if isinstance(each, list)]) == expected


@pytest.mark.parametrize("crew", CREWS)
@pytest.mark.parametrize("limit", [2, 0.02])
def test_a_limit_holds_for_streams(crew, limit):
    found = outcomes(trial(Stream(24, *faults()), crew, on_error=Skip(limit=limit)))
    (error,) = [each for each in found if isinstance(each, TooManyFaults)]
    assert isinstance(error.__cause__, OSError)
    assert len(error.faults) == 3


@pytest.mark.parametrize("crew", CREWS)
def test_what_a_function_raises_reaches_the_loop(crew):
    def decide(fault):
        return {}[fault.item]

    found = outcomes(trial(Stream(8, RaisesAt(5, lambda: OSError("bad"))), crew, on_error=decide))
    (error,) = [each for each in found if isinstance(each, Exception)]
    assert isinstance(error, KeyError)
    assert isinstance(error.__context__, OSError)


@pytest.mark.parametrize("crew", CREWS)
def test_errors_of_the_program_are_raised(crew):
    loader = trial(Stream(8, RaisesAt(5, lambda: NameError("pathes"))), crew, on_error="skip")
    assert sum(isinstance(each, NameError) for each in outcomes(loader)) == 1
    assert [each.action for each in loader.faults] == ["raised"]


@pytest.mark.parametrize("crew", ["trainer", *(pytest.param(crew, marks=pytest.mark.slow) for crew in [*CREWS][1:])])
def test_a_stream_that_only_raises_is_given_up(crew):
    class Broken(Stream):
        def __iter__(self):
            return Items(range(10**9), (RaisesEach(),), False)

    with pytest.raises(StreamLost, match="1000 times in a row"):
        next(iter(trial(Broken(8), crew, on_error="skip")))


class RaisesEach:
    def meet(self, index):
        raise OSError("connection lost")


def test_items_are_written_to_a_quarantine_and_fetched_all_the_same(tmp_path):
    for lines in (3, 6):
        loader = trial(Stream(24, *faults()), "trainer", on_error=Quarantine(tmp_path / "bad.jsonl"))
        assert flat(indices(loader)) == GOOD
        assert len((tmp_path / "bad.jsonl").read_text().splitlines()) == lines


# -- a generator -------------------------------------------------------------------------------


@pytest.mark.parametrize("crew", CREWS)
def test_a_generator_ends_with_its_first_exception_and_that_is_said(crew):
    loader = trial(Generated(24, RaisesAt(8, lambda: OSError("bad"))), crew, on_error="skip")
    found = outcomes(loader)
    (error,) = [each for each in found if isinstance(each, Exception)]
    assert isinstance(error, StreamLost)
    assert "it is a generator" in str(error)
    assert "__next__" in str(error)
    delivered = {number for batch in found if isinstance(batch, list) for number in batch}
    if crew != "trainer":
        assert set(range(1, 24, 2)) <= delivered  # of the other worker


@pytest.mark.parametrize("crew", CREWS)
def test_where_the_policy_raises_it_is_the_generators_own_error(crew):
    loader = trial(Generated(24, RaisesAt(8, lambda: OSError("bad"))), crew, on_error=Skip(on=ValueError))
    (error,) = [each for each in outcomes(loader) if isinstance(each, Exception)]
    assert str(error) == "bad"


# -- batches that cannot be made ---------------------------------------------------------------


def picky(samples: list[Any]) -> Any:
    if any(sample[0] in BAD for sample in samples):
        raise ValueError("cannot pad")
    return default_collate(samples)


@pytest.mark.parametrize("crew", CREWS)
def test_an_item_that_goes_into_no_batch_is_left_out(crew):
    loader = trial(Stream(24), crew, collate_fn=picky, on_error="skip")
    assert flat(indices(loader)) == GOOD
    assert {(each.kind, each.action) for each in loader.faults} == {("batch", "skipped")}
    items = {(each.seat or 0, each.item) for each in loader.faults}
    assert items == ({(0, 5), (0, 6), (0, 13)} if crew == "trainer" else {(1, 2), (0, 3), (1, 6)})


@pytest.mark.parametrize("crew", CREWS)
def test_or_a_value_is_put_in_its_place(crew):
    loader = trial(Stream(24), crew, collate_fn=picky, on_error=Replace(VALUE))
    assert flat(indices(loader)) == [*GOOD, 99, 99, 99]


@pytest.mark.parametrize("crew", CREWS)
def test_the_batch_is_raised_when_no_item_is_to_blame_or_none_is_to_be_left_out(crew):
    def broken(samples):
        raise ValueError("always")

    assert {str(error) for error in outcomes(trial(Stream(24), crew, collate_fn=broken, on_error="skip"))} == {"always"}
    found = outcomes(trial(Stream(24), crew, collate_fn=picky, on_error=Skip(on=OSError)))
    assert {str(each) for each in found if isinstance(each, Exception)} == {"cannot pad"}
    assert sum(isinstance(each, list) for each in found) >= 3


@pytest.mark.parametrize("crew", CREWS)
def test_a_value_that_goes_into_no_batch_either_is_raised(crew):
    found = outcomes(trial(Stream(8), crew, collate_fn=picky, on_error=Replace((5, torch.zeros(1), 0.0))))
    assert "cannot pad" in [str(each) for each in found]


@pytest.mark.parametrize("crew", CREWS)
def test_a_single_item_that_cannot_be_converted_is_left_out(crew):
    def convert(sample):
        if sample[0] in BAD:
            raise ValueError("cannot convert")
        return sample

    loader = trial(Stream(24), crew, batch_size=None, collate_fn=convert, on_error="skip")
    assert sorted(sample[0] for sample in loader) == GOOD
    assert len(loader.faults) == 3


# -- deaths ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"on_error": "skip"},
        {"on_error": Replace(VALUE)},
        {"on_error": "skip", "collate_fn": picky},
        {"on_error": Replace(VALUE), "collate_fn": picky},
        {"on_error": "skip", "batch_size": 3, "drop_last": True},
        {"on_error": "skip", "prefetch_factor": 1},
    ],
    ids=["skip", "replace", "collate", "collate and replace", "drop_last", "prefetch 1"],
)
def test_after_a_kill_the_stream_is_the_same_and_the_ledger_has_each_item_once(options):
    raising = () if "collate_fn" in options else faults()
    undisturbed = trial(Stream(40, *raising), **options)
    expected = contents(undisturbed)
    kills = DiesAt(24, once=True), DiesAt(37, once=True)
    loader = trial(Stream(40, *raising, *kills), **options)
    assert contents(loader) == expected
    assert loader.restarts == 2

    def told(ledger):
        return sorted((each.seat, each.item, each.action) for each in ledger if each.kind != "death")

    assert told(loader.faults) == told(undisturbed.faults)


class DiesBehindItsLast(torch.utils.data.IterableDataset):
    """Its worker ends once the last batch is sent, and before it can say that there is none after it.

    It keeps count of epochs, in a state of its own.
    """

    def __init__(self, fatal: bool) -> None:
        self.fatal, self.epoch = fatal, 0

    def __iter__(self):
        self.epoch += 1
        yield from range(10 * self.epoch, 10 * self.epoch + 9)
        yield Final(10 * self.epoch + 9, self.fatal)

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.epoch = state["epoch"]


class Final:
    def __init__(self, number: int, fatal: bool) -> None:
        self.number, self.fatal = number, fatal

    def __del__(self) -> None:
        if self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)


def numbers(samples: list[Any]) -> list[int]:
    return [getattr(sample, "number", sample) for sample in samples]


@pytest.mark.parametrize("prefetch", [1, 2])
def test_a_stream_whose_worker_ends_behind_its_last_batch_is_over(prefetch):
    options = {"batch_size": 4, "prefetch_factor": prefetch, "persistent_workers": True, "collate_fn": numbers}
    undisturbed = DataLoader(DiesBehindItsLast(False), num_workers=1, **options)
    loader = DataLoader(DiesBehindItsLast(True), num_workers=1, **options)
    for restarts in (1, 2, 3):
        assert list(loader) == list(undisturbed)
        assert loader.restarts == restarts


def test_after_a_kill_retries_are_remembered():
    once = [RaisesAt(number, lambda: OSError("bad"), once=True) for number in BAD]
    loader = trial(Stream(40, *once, DiesAt(24, once=True), stays=True), on_error=Retry(2, backoff=0.01))
    assert flat(indices(loader)) == list(range(40))
    assert [each.action for each in loader.faults if each.kind == "exception"] == ["tried again"] * 3


@pytest.mark.parametrize("on_error", ["raise", Skip(on=ValueError)])
def test_after_a_kill_a_batch_that_was_raised_is_not_raised_again(on_error):
    def disturbed(*more):
        return [
            each if isinstance(each, list) else str(each)
            for each in outcomes(trial(Stream(40, *faults(*more)), on_error=on_error))
        ]

    assert disturbed(DiesAt(24, once=True), DiesAt(37, once=True)) == disturbed()


class Changing(Stream):
    """A worker ends at item 16; item 2 meets a fault when it is gone through for the second time."""

    def __init__(self, fault: Any) -> None:
        super().__init__(24, DiesAt(16, once=True))
        self.once, self.fault = Once(), fault

    def __iter__(self):
        return Items(self.share(), (self, *self.faults), False)

    def meet(self, number):
        if number == 2 and not self.once.first():
            self.fault.meet(number)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_an_item_that_fails_only_when_it_is_gone_through_again_changes_nothing(on_error):
    """It was delivered; now it only has to count."""
    gone = RaisesAt(2, lambda: OSError("gone by now"))
    loader = trial(Changing(gone), num_workers=1, on_error=on_error)
    assert indices(loader) == [list(range(first, first + 4)) for first in range(0, 24, 4)]
    assert [each.kind for each in loader.faults] == ["death"]


@pytest.mark.parametrize(("fault", "expected"), [(DiesAt(2), WorkerDied), (HangsAt(2), WorkerStalled)], ids=str)
def test_who_does_not_get_through_it_again_is_told_of_and_not_started_forever(fault, expected):
    loader = trial(Changing(fault), stall_timeout=1)
    found = outcomes(loader)
    (error,) = [each for each in found if isinstance(each, Exception)]
    assert type(error) is expected
    assert error.batch == 4  # to which it was on the way
    assert flat([batch for batch in found if isinstance(batch, list)]) == sorted([*range(1, 24, 2), *range(0, 16, 2)])


@pytest.mark.parametrize(
    ("fault", "on_error", "expected"),
    [
        (DiesAt(12), "raise", WorkerDied),
        (DiesAt(12), "skip", StreamLost),
        (HangsAt(12), "raise", WorkerStalled),
        (HangsAt(12), "skip", StreamLost),
    ],
    ids=str,
)
def test_an_item_that_nobody_gets_beyond_ends_its_stream_and_no_other(fault, on_error, expected):
    loader = trial(Stream(32, fault), on_error=on_error, stall_timeout=1)
    found = outcomes(loader)
    (error,) = [each for each in found if isinstance(each, Exception)]
    assert type(error) is expected
    delivered = flat([batch for batch in found if isinstance(batch, list)])
    assert delivered == sorted([*range(1, 32, 2), *range(0, 8, 2)])
    (told,) = loader.faults.filter(action="raised")
    assert (told.item, told.seat, told.attempts) == (6, 0, 2 if isinstance(fault, DiesAt) else 1)
    if expected is StreamLost:
        assert "cannot go on after item 6" in str(error)
        assert isinstance(error.__cause__, WorkerDied | WorkerStalled)


def test_items_that_were_left_out_before_count_when_a_death_is_told():
    loader = trial(Stream(40, *faults(), DiesAt(25)), on_error="skip")
    outcomes(loader)
    (told,) = loader.faults.filter(action="raised")
    assert (told.seat, told.item) == (1, 12)


def test_in_a_later_epoch_everything_is_asked_anew():
    loader = trial(Stream(24, *faults()), on_error="skip", persistent_workers=True)
    assert flat(indices(loader)) == flat(indices(loader)) == GOOD
    assert sorted(each.epoch for each in loader.faults) == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("crew", ["processes", "threads"])
def test_an_epoch_that_is_left_while_a_worker_asks_is_forgotten(crew):
    """Nobody answers a question of an epoch that is over; the worker must not wait for it."""
    loader = trial(
        Stream(400, *(RaisesAt(n, lambda: OSError("bad")) for n in range(10, 400))),
        crew,
        on_error="skip",
        persistent_workers=True,
    )
    for _ in range(3):
        next(iter(loader))
    found = iter(loader)
    assert next(found)[0].tolist() == [0, 2, 4, 6]


class Undivided(Stream):
    """Gives every worker all of it; item 5, which is the second worker's, raises there once."""

    def __init__(self, length: int) -> None:
        super().__init__(length, stays=True)
        self.once = Once()

    def __iter__(self):
        return Items(range(self.length), (self,), self.stays)

    def meet(self, number):
        if number == 5 and get_worker_info().id == 1 and self.once.first():
            raise OSError("bad")


def test_a_stream_that_is_divided_for_the_user_can_be_retried():
    loader = trial(Undivided(24), on_error=Retry(2, backoff=0), shard="worker")
    assert flat(indices(loader)) == list(range(24))
    assert [(each.seat, each.item, each.action) for each in loader.faults] == [(1, 2, "tried again")]


def test_a_pause_before_a_retry_is_no_stall():
    once = RaisesAt(5, lambda: OSError("bad"), once=True)
    loader = trial(Stream(8, once, stays=True), on_error=Retry(1, backoff=1.5), stall_timeout=1)
    assert flat(indices(loader)) == list(range(8))
    assert [each.kind for each in loader.faults] == ["exception"]
