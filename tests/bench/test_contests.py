"""Who is ahead, and which targets are reached."""

from __future__ import annotations

import json
from dataclasses import replace

import made_up
import pytest

from bench.catalogue import GROUPS, contests
from bench.contest import Contest, Outcome, Result, Target, outcome_from
from bench.report.behind import behind
from bench.report.files import Results
from bench.report.words import slug


def outcome(ours: list[float], theirs: list[float], better: str = "more", target: Target | None = None) -> Outcome:
    targets = {} if target is None else {"peer": target}
    contest = Contest("any", "anything", "units/s", "nowhere:start", (), better=better, targets=targets)
    return Outcome(contest, [Result("holdfast", ours), Result("peer", theirs)])


@pytest.mark.parametrize(
    ("ours", "theirs", "better", "ratio", "is_ahead"),
    [
        ([1.0, 4.0], [2.0, 1.0], "more", 2.0, True),
        ([1.0, 4.0], [2.0, 1.0], "less", 1.0, True),
        ([1.0], [2.0], "more", 0.5, False),
        ([2.0], [1.0], "less", 2.0, False),
        ([2.0], [0.0], "less", None, False),
        ([0.0], [0.0], "less", None, True),
        ([], [2.0], "more", None, None),
        ([2.0], [], "more", None, None),
    ],
)
def test_the_best_of_both_is_compared(ours, theirs, better, ratio, is_ahead):
    held = outcome(ours, theirs, better)
    assert (held.ratio("peer"), held.ahead("peer")) == (ratio, is_ahead)


@pytest.mark.parametrize(
    ("target", "reached"),
    [(Target(2), True), (Target(2.1), False), (Target(2, at_most=True), True), (Target(1.9, at_most=True), False)],
    ids=str,
)
def test_a_target_is_a_bound_on_the_ratio(target, reached):
    assert outcome([4.0], [2.0], target=target).reached("peer") is reached


def test_a_target_without_figures_is_neither_reached_nor_forgotten():
    held = outcome([4.0], [], target=Target(2))
    assert held.reached("peer") is None
    assert [one.contender for one in behind(Results(groups={"any": [held]})).missed] == ["peer"]


def test_every_peer_that_is_as_good_is_listed_and_no_other():
    found = behind(made_up.results())
    assert [(one.outcome.contest.name, one.peer.contender) for one in found.trailing] == [
        ("tiny", "SPDL"),
        ("first batch", "torch fork"),
    ]
    assert [(one.outcome.contest.name, one.contender) for one in found.missed] == [
        ("tiny", "torch fork"),
        ("tiny", "SPDL"),
        ("tiny", "Ray Data"),
        ("first batch", "torch fork"),
    ]
    assert [result.contender for _, result in found.without] == ["holdfast"]
    assert [one.fault for _, one in found.faults] == ["hangs"]
    level = behind(Results(groups={"any": [outcome([2.0], [2.0]), outcome([0.0], [0.0], "less")]}))
    assert len(level.trailing) == 2


def test_only_what_holdfast_must_never_do_fails_the_run():
    assert made_up.LOADERS.failures == []
    lost = replace(made_up.LOADERS.results[0], outcome="loss")
    assert "killed: loss" in replace(made_up.LOADERS, results=[lost]).failures[0]
    assert made_up.RATE.failures == []
    assert made_up.BROKEN.failures == ["kept: holdfast: MemoryError: no <more>"]


@pytest.mark.parametrize("held", [made_up.RATE, made_up.TIME, made_up.CURVE[0]], ids=lambda held: held.contest.name)
def test_an_outcome_comes_back_from_its_file(held):
    back = outcome_from(json.loads(json.dumps(held.as_dict())))
    assert back.results == held.results
    assert back.as_dict() == held.as_dict()
    assert back.contest.limits == held.contest.limits


def test_the_best_of_as_many_rounds_is_compared():
    luckier = outcome([5.0, 4.0, 8.0], [2.0, 1.0])
    assert luckier.ratio("peer") == 2.5
    assert luckier.figure("holdfast") == 8.0


def test_round_by_round_those_are_compared_that_met_the_same_machine():
    slowing_down = Outcome(
        Contest("rate", "", "batches/s", "nowhere:start", ()),
        [Result("holdfast", [12.0, 6.0, 3.0]), Result("peer", [10.0, 5.0]), Result("none", cannot="no")],
    )
    assert slowing_down.round_by_round("peer") == pytest.approx(1.2)
    assert slowing_down.round_by_round("none") is None


def test_the_spread_is_that_of_all_rounds():
    assert Result("peer", [9.0, 11.0, 10.0]).spread == pytest.approx(0.2)
    assert Result("peer", [9.0]).spread is None


def test_contests_and_their_curves_have_names_of_their_own():
    names = [slug(contest.name) for contest in contests()]
    assert len({*names, *GROUPS}) == len(names) + len(GROUPS)


def test_targets_champions_and_limits_take_part():
    for contest in contests():
        assert {contest.champion, *contest.limits, *contest.targets} <= {*contest.contenders}, contest.name


def test_a_peer_is_compared_with_the_way_that_is_used_as_it_is():
    ways = ("holdfast", "holdfast threads", "peer threads", "peer")
    contest = Contest("rate", "", "batches/s", "", ways, beside={"peer threads": "holdfast threads"})
    figures = zip(ways, (10.0, 40.0, 20.0, 20.0))
    outcome = Outcome(contest, [Result(name, [figure]) for name, figure in figures])
    assert (outcome.ratio("peer threads"), outcome.ahead("peer threads")) == (2.0, True)
    assert (outcome.ratio("peer"), outcome.ahead("peer")) == (0.5, False)
    back = outcome_from(json.loads(json.dumps(outcome.as_dict())))
    assert back.ratio("peer threads") == 2.0
    without = Outcome(contest, [one for one in outcome.results if one.contender != "holdfast threads"])
    assert without.ratio("peer threads") == 0.5
