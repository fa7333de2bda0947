"""Real seats, with toys in them: whatever a contender does, the others have their figures."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bench import turns
from bench.contest import Contest, Target
from bench.turns import Seats

NAMES = ("holdfast", "unable", "dies", "hangs", "raises", "reluctant", "untidy")
TOYS = Contest("toys", "toys", "turns/s", "toys:start", NAMES)


@pytest.fixture
def seats(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setattr(turns, "GO_LIMIT", 2.0)
    told: list[str] = []
    with (tmp_path / "log").open("wb") as errors:
        seats = Seats(tmp_path, errors, quick=True, tell=told.append)
        seats.told, seats.log = told, tmp_path / "log"
        yield seats
        seats.end()


def test_one_that_cannot_dies_hangs_or_raises_ends_nobody_else(seats):
    began = time.monotonic()
    results = {result.contender: result for result in seats.hold(TOYS, rounds=3).results}
    assert time.monotonic() - began < 40
    assert results["holdfast"].figures == [1.0, 2.0, 3.0]
    assert results["holdfast"].note == "counts"
    assert results["unable"].cannot == "reads only files"
    assert results["dies"].failed == "the program ended: killed by SIGKILL"
    assert results["hangs"].failed == "hangs: no answer within 2 s"
    assert results["raises"].failed == "ValueError: no <figure>"
    assert results["reluctant"].cannot == "changed its mind"
    assert [name for name, result in results.items() if result.figures] == ["holdfast", "untidy"]
    assert results["untidy"].note == "counts; when closed: OSError: does not close"
    assert b"libraries print things" in seats.log.read_bytes()
    assert b"Traceback" in seats.log.read_bytes()

    again = seats.hold(TOYS, rounds=1, only=frozenset({"dies", "untidy"}))
    assert {result.contender: result.figures for result in again.results} == {"dies": [1.0], "untidy": [1.0]}


def test_every_other_round_is_in_reverse(seats):
    pair = Contest("pair", "two", "turns/s", "toys:start", ("holdfast", "peer"))
    seats.hold(pair, rounds=2)
    assert seats.told == [
        "holdfast gets ready", "peer gets ready",
        "round 1 of 2: holdfast", "round 1 of 2: peer", "round 2 of 2: peer", "round 2 of 2: holdfast",
    ]  # fmt: skip


def test_who_is_far_behind_after_two_rounds_has_no_more_unless_a_target_is_about_it(seats):
    names = ("holdfast", "near", "crawls", "stock")
    contest = Contest("far", "far", "turns/s", "toys:start", names, targets={"stock": Target(6)})
    rounds = {result.contender: len(result.figures) for result in seats.hold(contest, rounds=4).results}
    assert rounds == {"holdfast": 4, "near": 4, "crawls": 2, "stock": 4}


def test_a_contest_gets_new_processes_if_what_others_left_in_them_would_count(seats):
    first, *others = [
        seats.hold(Contest("who", "who", "pid", "toys:start", ("named",), fresh=fresh), rounds=1).results[0].figures
        for fresh in (False, False, True)
    ]
    assert others[0] == first
    assert others[1] != first
