"""Samples known to be bad, from one run to the next; and policies that are functions."""

from __future__ import annotations

import json
import multiprocessing

import pytest
import torch
from trials import CREWS, Noisy, OwnNoise, indices, outcomes, trial

from holdfast import Fault, Quarantine, Replace, Retry, Skip, TooManyFaults, WorkerDied
from holdfast.testing import DiesAt, Faulty, RaisesAt


class Paths(Noisy):
    """Knows its samples by path, and writes down which it is asked for."""

    def __init__(self, folder, prefix: str = "a") -> None:
        super().__init__()
        self.paths = [f"/data/{prefix}{n}.jpg" for n in range(24)]
        self.asked = folder / "asked"

    def __getitem__(self, index):
        with open(self.asked, "a") as file:
            file.write(f"{index}\n")
        return super().__getitem__(index)

    def was_asked_for(self, index: int) -> bool:
        found = self.asked.read_text().split()
        self.asked.unlink()
        return str(index) in found


class Rotten(Paths):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        if index == 9:
            raise OSError(5, "Input/output error")
        return sample


@pytest.mark.parametrize("crew", ["trainer", "processes"])
def test_what_one_run_skipped_the_next_does_not_fetch(crew, tmp_path):
    file = tmp_path / "lists" / "bad.jsonl"
    first = trial(Rotten(tmp_path), crew, on_error=Quarantine(file))
    before = indices(first)
    (line,) = map(json.loads, file.read_text().splitlines())
    assert (line["index"], line["where"], line["error"]["type"]) == (9, "/data/a9.jpg", "OSError")
    assert line["error"]["attributes"]["errno"] == 5
    dataset = Rotten(tmp_path)
    assert dataset.was_asked_for(9)
    second = trial(dataset, crew, on_error=Quarantine(file))
    assert indices(second) == before
    assert not dataset.was_asked_for(9)
    (fault,) = second.faults
    assert (fault.action, fault.index, fault.where, fault.instead) == ("known bad", 9, "/data/a9.jpg", before[2][1])
    assert len(file.read_text().splitlines()) == 1


def test_a_line_about_another_sample_does_not_count(tmp_path):
    """The data set was changed: what has this index now is another file."""
    file = tmp_path / "bad.jsonl"
    indices(trial(Rotten(tmp_path), "trainer", on_error=Quarantine(file)))
    changed = Paths(tmp_path, "b")
    loader = trial(changed, "trainer", on_error=Quarantine(file))
    assert indices(loader)[2] == [8, 9, 10, 11]
    assert not loader.faults


def test_a_line_that_was_cut_short_harms_neither_those_before_it_nor_those_after(tmp_path):
    file = tmp_path / "bad.jsonl"
    file.write_text('{"index": 3, "where": ""}\nnonsense\n[]\n{"index": 4, "wh')
    loader = trial(Faulty(Noisy(), RaisesAt(9, lambda: OSError("gone"))), "trainer", on_error=Quarantine(file))
    indices(loader)
    assert [(each.index, each.action) for each in loader.faults] == [(3, "known bad"), (9, "skipped")]
    again = trial(Noisy(), "trainer", on_error=Quarantine(file))
    indices(again)
    assert [each.index for each in again.faults] == [3, 9]


def test_a_new_epoch_knows_why_still(tmp_path):
    loader = trial(Rotten(tmp_path), "trainer", on_error=Quarantine(tmp_path / "bad.jsonl"))
    indices(loader)
    indices(loader)
    assert [(each.action, each.error.errno) for each in loader.faults] == [("skipped", 5), ("known bad", 5)]


class ByPair(Noisy):
    """Samples go by tuples."""

    def __getitem__(self, index):
        video, frame = index
        if frame == 3:
            raise OSError("gone")
        return video * 10 + frame, 0


@pytest.mark.parametrize("crew", ["trainer", "processes"])
def test_an_index_may_be_a_tuple(crew, tmp_path):
    pairs = [(video, frame) for video in range(2) for frame in range(6)]
    for action in ("skipped", "known bad"):
        loader = trial(ByPair(), crew, sampler=pairs, on_error=Quarantine(tmp_path / "bad.jsonl"))
        found = sum(indices(loader), start=[])  # noqa: RUF017  # twelve of them
        assert len(found) == 12
        assert not {3, 13} & set(found)
        assert [(each.index, each.action) for each in loader.faults] == [((0, 3), action), ((1, 3), action)]


def _append(path: str, ready, start: int) -> None:
    loader = trial(
        Faulty(Noisy(), *(RaisesAt(n, lambda: OSError("gone")) for n in range(start, 24, 4))),
        "trainer",
        on_error=Quarantine(path),
    )
    ready.wait()
    indices(loader)


@pytest.mark.slow
def test_several_ranks_write_to_one_file(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(2)
    ranks = [context.Process(target=_append, args=(str(tmp_path / "bad.jsonl"), ready, rank)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(60)
        rank.close()
    lines = [json.loads(line)["index"] for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert set(lines) >= {n for n in range(24) if n % 4 < 2}


def test_a_limit_holds_for_a_quarantine_too(tmp_path):
    loader = trial(Rotten(tmp_path), "trainer", on_error=Quarantine(tmp_path / "bad.jsonl", limit=0))
    assert isinstance(outcomes(loader)[2], TooManyFaults)
    assert not (tmp_path / "bad.jsonl").exists()


# -- functions ---------------------------------------------------------------------------------


def bad(crew: str, error=lambda: OSError(5, "Input/output error", "/data/9.jpg")):
    return Faulty(OwnNoise() if crew == "threads" else Noisy(), RaisesAt(9, error))


@pytest.mark.parametrize("crew", CREWS)
def test_a_function_gets_the_fault_and_answers(crew):
    told: list[Fault] = []

    def decide(fault: Fault):
        told.append(fault)
        return Retry(1, backoff=0) if fault.attempts == 1 else "skip"

    loader = trial(bad(crew), crew, on_error=decide)
    assert indices(loader)[2][0::2] == [8, 10]
    assert [(each.index, each.attempts, each.batch, each.where) for each in told] == [
        (9, 1, 2, "/data/9.jpg"),
        (9, 2, 2, "/data/9.jpg"),
    ]
    assert told[0].error.errno == 5
    assert [each.action for each in loader.faults] == ["tried again", "skipped"]


def test_a_function_may_raise_what_it_was_given():
    def decide(fault: Fault):
        raise fault.error

    error = outcomes(trial(bad("processes"), on_error=decide))[2]
    assert isinstance(error, OSError)
    assert error.errno == 5


@pytest.mark.parametrize("crew", CREWS)
def test_what_a_function_raises_reaches_the_loop_with_the_fault_as_its_context(crew):
    def decide(fault: Fault):
        return {}[fault.where]

    loader = trial(bad(crew), crew, on_error=decide)
    found = outcomes(loader)
    error = found.pop(2)
    assert isinstance(error, KeyError)
    assert isinstance(error.__context__, OSError)
    assert error.__context__.filename == "/data/9.jpg"
    assert len(found) == 5
    (fault,) = loader.faults
    assert (type(fault.error), fault.action, fault.index) == (KeyError, "raised", 9)


@pytest.mark.parametrize("crew", CREWS)
def test_an_answer_that_is_none_is_refused(crew):
    error = outcomes(trial(bad(crew), crew, on_error=lambda fault: True))[2]
    assert isinstance(error, ValueError)
    assert "on_error should be one of" in str(error)


@pytest.mark.parametrize("crew", CREWS)
def test_a_function_that_stops_the_iteration_does_not_end_the_epoch(crew):
    found = outcomes(trial(bad(crew), crew, on_error=lambda fault: next(iter(()))))
    assert len(found) == 6
    assert "StopIteration" in str(found[2])


@pytest.mark.parametrize("crew", ["trainer", "processes"])
def test_what_a_function_puts_in_the_place_stays_there_in_later_epochs(crew):
    calls: list[int] = []

    def value(fault: Fault):
        calls.append(fault.index)
        return -fault.index, torch.zeros(1), 0.5, 0.5

    for on_error in (Replace(value), lambda fault: Replace(value)):
        loader = trial(bad(crew), crew, on_error=on_error)
        assert [indices(loader)[2], indices(loader)[2]] == [[8, -9, 10, 11]] * 2
        assert [each.action for each in loader.faults] == ["replaced", "known bad"]
    assert calls == [9, 9]


def test_deaths_may_be_treated_apart():

    dataset = Faulty(Noisy(), DiesAt(5), RaisesAt(9, lambda: OSError("gone")))
    loader = trial(dataset, on_error=Skip(on=WorkerDied) | Replace((0, torch.zeros(1), 0.0, 0.0)))
    found = indices(loader)
    assert found[1][0::2] == [4, 6]
    assert found[2] == [8, 0, 10, 11]
    assert {each.index: each.action for each in loader.faults if each.action != "restarted"} == {
        5: "skipped",
        9: "replaced",
    }
