"""Who owes whom, from what each process does: values only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast._engine.causes import Kind
from holdfast._system.frames import Frame, Threads
from holdfast.doctor.live.conclusion import Conclusion, Standing, Traces, conclude
from holdfast.doctor.live.job import Role
from holdfast.doctor.live.member import Doing, Member
from holdfast.doctor.live.places import START, awaited
from holdfast.doctor.live.report import Section
from holdfast.doctor.live.straggler import headline


def member(pid: int, doing: Doing, **facts: Any) -> Member:
    nothing: dict[str, Any] = {
        "role": Role.TORCH_WORKER,
        "seat": None,
        "kind": Kind.UNKNOWN,
        "why": "waits",
        "awaits": "",
        "together": "",
        "cpu": 0.0,
        "has_moved": False,
        "batch": None,
        "sample": None,
        "at": "",
        "since": None,
        "own": (),
        "stack": (),
        "waits_for": (),
        "is_pools": False,
        "owed_by": None,
        "seats": None,
        "seen_by": "",
        "unseen": (),
    }
    return Member(pid=pid, doing=doing, **{**nothing, **facts})


def trainer(doing: Doing, **facts: Any) -> Member:
    return member(1, doing, role=Role.TRAINER, awaits="a batch" if doing is Doing.AWAITS else "", **facts)


def stuck(pid: int, **facts: Any) -> Member:
    return member(pid, Doing.WAITS, kind=Kind.SOCKET, why="waits for 10.0.0.1:80", **facts)


def idle(pid: int, **facts: Any) -> Member:
    return member(pid, Doing.IDLE, **facts)


AWAITS = trainer(Doing.AWAITS)


def test_whose_turn_it_is_comes_before_who_has_the_earliest_batch():
    hands = [stuck(2, seat=0, batch=4), stuck(3, seat=1, batch=5)]
    assert conclude(AWAITS, hands, Traces()).culprit == 2
    assert conclude(trainer(Doing.AWAITS, owed_by=1), hands, Traces()).culprit == 3


def test_who_is_not_awaited_yet_may_take_its_time():
    """The next batch is on its way; that of the other worker is not needed before."""
    hands = [stuck(2, batch=4, has_moved=True), stuck(3, batch=5)]
    assert conclude(AWAITS, hands, Traces()).standing is Standing.HEALTHY


def test_who_has_no_batch_yet_holds_nobody_up():
    """A worker that still starts."""
    assert conclude(AWAITS, [stuck(2), stuck(3, batch=5)], Traces()).culprit == 3


def test_without_batch_numbers_anybody_who_does_not_get_on_is_named():
    assert conclude(AWAITS, [stuck(2, has_moved=True), stuck(3), stuck(4)], Traces()).culprit == 3


def test_only_those_that_the_trainer_listens_to_can_hold_it_up():
    """The workers of another loader may wait for what they like."""
    told = conclude(trainer(Doing.AWAITS, waits_for=(3,)), [stuck(2), stuck(3)], Traces())
    assert told.culprit == 3


@pytest.mark.parametrize("moved", [True, False])
def test_a_worker_that_gets_on_is_no_hang(moved):
    told = conclude(AWAITS, [stuck(2, has_moved=moved), idle(3)], Traces())
    assert told.standing is (Standing.HEALTHY if moved else Standing.STALLED)


@pytest.mark.parametrize("moved", [True, False])
def test_of_a_worker_that_runs_without_a_stack_the_trainer_tells_whether_it_gets_on(moved):
    runs = member(2, Doing.COMPUTES, kind=Kind.LOOP, has_moved=None)
    told = conclude(trainer(Doing.AWAITS, has_moved=moved), [runs], Traces())
    assert told.standing is (Standing.HEALTHY if moved else Standing.STALLED)


def test_a_wait_for_nobody_is_a_deadlock():
    told = conclude(AWAITS, [idle(2), idle(3)], Traces())
    assert told.standing is Standing.STALLED
    assert told.text == "the trainer waits for a batch, which nobody makes; all 2 workers wait for work: a deadlock"


def test_a_trainer_whose_workers_are_about_to_start_is_no_deadlock():
    found = conclude(replace(AWAITS, awaits=START), [], Traces())
    assert (found.standing, found.culprit) == (Standing.HEALTHY, None)


def test_a_wait_for_the_zygote_is_known_by_its_stack():
    calls = Frame("holdfast/_system/zygote_server.py", 40, "receive"), Frame("holdfast/_system/zygote.py", 1, "_ask")
    assert awaited(Threads((calls,))) == (START, calls)


def test_batches_that_arrive_while_all_workers_rest_are_no_deadlock():
    told = conclude(trainer(Doing.AWAITS, has_moved=True), [idle(2), idle(3)], Traces())
    assert told.standing is Standing.HEALTHY


@pytest.mark.parametrize(
    ("hands", "traces", "missed"),
    [
        ([idle(2), member(3, Doing.ENDED, seat=1)], Traces(), "worker 1 (pid 3)"),
        ([idle(2, seat=0, seats=3), idle(3, seat=2, seats=3)], Traces(), "worker 1"),
        ([idle(2, seat=1, seats=3)], Traces(), "workers 0, 2"),
        ([idle(2)], Traces(children=1), "1 of its processes"),
    ],
)
def test_an_end_that_was_not_noticed_is_named_by_what_is_known_of_it(hands, traces, missed):
    told = conclude(AWAITS, hands, traces)
    assert f"which nobody makes: {missed} ended, and the trainer has not noticed" in told.text


@pytest.mark.parametrize("kind", [Kind.SOCKET, Kind.LOCK, Kind.PIPE, Kind.CHILD])
def test_a_trainer_that_waits_for_something_else_is_stalled_itself(kind):
    told = conclude(trainer(Doing.WAITS, kind=kind), [idle(2)], Traces())
    assert (told.standing, told.culprit) == (Standing.STALLED, 1)


@pytest.mark.parametrize(("kind", "moved"), [(Kind.SLEEP, False), (Kind.UNKNOWN, False), (Kind.SOCKET, True)])
def test_a_trainer_that_sleeps_or_gets_on_is_not(kind, moved):
    told = conclude(trainer(Doing.WAITS, kind=kind, has_moved=moved), [idle(2)], Traces())
    assert told.standing is Standing.HEALTHY


def test_a_stopped_worker_is_told_of_before_the_trainer_misses_it():
    stopped = member(2, Doing.STOPPED, kind=Kind.STOPPED, why="is stopped")
    told = conclude(trainer(Doing.COMPUTES), [stopped, idle(3)], Traces())
    assert (told.standing, told.culprit) == (Standing.STALLED, 2)


def test_a_trainer_that_has_ended_is_no_stall():
    assert conclude(trainer(Doing.ENDED), [], Traces()).standing is Standing.ENDED


def section(rank: int, **facts: Any) -> Section:
    member = trainer(Doing.WAITS, **facts)
    return Section(str(rank), Conclusion(Standing.HEALTHY, f"conclusion {rank}"), member, (), ())


def test_the_only_rank_that_is_not_in_an_operation_of_all_is_the_straggler():
    others = [section(rank, together="barrier", own=("main at train.py:9",)) for rank in range(3)]
    told = headline([*others, section(3)])
    assert told.standing is Standing.STALLED
    assert told.text == (
        "rank 3 holds up the 3 others, which wait for it in barrier, in main at train.py:9: conclusion 3"
    )


def test_ranks_that_get_on_have_no_straggler():
    others = [section(rank, together="barrier", has_moved=True) for rank in range(3)]
    assert headline([*others, section(3)]).standing is Standing.HEALTHY
