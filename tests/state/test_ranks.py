"""`holdfast.DistributedSampler` on the ranks of real torchruns: saved on 2 of them, gone on with on 4, 3 and 1."""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import pytest
import torch
from dealt import CASES, EPOCHS, RELAY, WORKERS, Case, states_of
from torchruns import ranks, run

pytestmark = pytest.mark.slow  # ten interpreters, one after the other

DEALT = Path(__file__).parent / "dealt.py"
WORLDS = (2, 4, 3, 1)  # in this order: each goes on with what those before it have saved
NAMES = list(CASES)
LAST = EPOCHS - 1
Steps = list[dict[str, Any]]  # of one rank


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[int, list[Any]]:
    """What each rank of each run has written down."""
    folder = tmp_path_factory.mktemp("ranks")
    states, found = folder / "states.json", {}
    for world in WORLDS:
        run(*ranks(world, DEALT, folder / str(world), states))
        found[world] = [json.loads((folder / str(world) / f"rank-{rank}.json").read_text()) for rank in range(world)]
        saved = {name: states_of(found[2][0]["whole"][name]) for name in NAMES}
        states.write_text(json.dumps({"cases": saved, "relay": found[world][0]["relay"][-1]["state"]}))
    return found


def order(case: Case, epoch: int) -> list[int]:
    """As torch's own sampler draws it."""
    if not case.shuffle:
        return list(range(case.size))
    return torch.randperm(case.size, generator=torch.Generator().manual_seed(7 + epoch)).tolist()


def dealt(case: Case, world: int, left: list[int], whole: list[int]) -> list[int]:
    """What so many ranks are to be given of what is left of an order, from the documented rules."""
    over = len(left) % world
    if case.tail == "drop":
        left = left[: len(left) - over]
    elif case.tail == "pad" and over:
        left = left + whole[: world - over]
    return left[: len(left) - len(left) % (world * case.batch_size)] if case.drop_last else left


def together(of_ranks: list[Steps], what: str = "indices") -> list[Any]:
    """Step by step, and in each step the first of every rank, the second of every rank, …"""
    found = []
    for step in zip(*of_ranks, strict=True):  # equally many steps on all ranks
        cards = chain.from_iterable(zip_longest(*(batch[what] for batch in step)))
        found += [card for card in cards if card is not None]
    return found


def impossible(case: Case, world: int, left: int) -> bool:
    """A rank would have an empty batch."""
    return case.tail == "exact" and left % world > 0 and (left < world or case.batch_size == 1)


def whole_of(runs, world: int, name: str, epoch: int) -> list[Steps]:
    return [rank["whole"][name]["epochs"][epoch] for rank in runs[world]]


def cases_of(world: int) -> list[tuple[str, Case]]:
    found = [*CASES.items(), *([(WORKERS.name, WORKERS)] if world == 2 else [])]
    return [(name, case) for name, case in found if not impossible(case, world, case.size)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("world", WORLDS)
def test_all_ranks_together_are_given_one_order_whatever_their_number(world, runs):
    for name, case in cases_of(world):
        for epoch in range(EPOCHS):
            whole = order(case, epoch)
            given = together(whole_of(runs, world, name, epoch))
            assert given == dealt(case, world, whole, whole), name
            if case.tail == "exact":
                assert Counter(given) == Counter(range(case.size)), name


@pytest.mark.parametrize("world", WORLDS)
def test_every_rank_has_as_many_batches_and_none_is_empty(world, runs):
    for name, case in cases_of(world):
        for epoch in range(EPOCHS):
            of_ranks = whole_of(runs, world, name, epoch)
            assert {len(steps) for steps in of_ranks} == {runs[world][0]["whole"][name]["length"]}
            for step in zip(*of_ranks, strict=True):
                sizes = [len(batch["indices"]) for batch in step]
                assert max(sizes) <= case.batch_size
                assert max(sizes) - min(sizes) <= (case.tail == "exact")
                assert min(sizes) > 0


@pytest.mark.parametrize("world", WORLDS)
def test_the_state_is_the_same_on_every_rank(world, runs):
    """Though each of them has seeded torch with another number."""
    first, *others = runs[world]
    for other in others:
        for name, _ in cases_of(world):
            assert other["whole"][name]["between"] == first["whole"][name]["between"]
            for epoch in range(EPOCHS):
                states = [[step["state"] for step in one["whole"][name]["epochs"][epoch]] for one in (first, other)]
                assert states[0] == states[1]


@pytest.mark.parametrize("world", WORLDS)
def test_nothing_random_is_drawn_twice(world, runs):
    for name, _ in cases_of(world):
        noise = [value for epoch in range(EPOCHS) for value in together(whole_of(runs, world, name, epoch), "noise")]
        assert len(set(noise)) == len(noise), name


@pytest.mark.parametrize("world", WORLDS)
def test_epochs_are_counted_when_nobody_sets_them(world, runs):
    counted = Case(61, 4, "exact")
    told = counted._replace(sets_epoch=True)
    for epoch in range(EPOCHS):
        for what in ("indices", "noise"):
            given = [together(whole_of(runs, world, case.name, epoch), what) for case in (counted, told)]
            assert given[0] == given[1]
    assert order(counted, 0) != order(counted, 1)


@pytest.mark.parametrize("world", WORLDS)
def test_as_many_ranks_go_on_with_the_very_same_batches(world, runs):
    """Bit by bit, from every step on."""
    for name, _ in cases_of(world):
        for rank in runs[world]:
            steps = rank["whole"][name]["epochs"][LAST]
            assert rank["again"][name] == [steps[done + 1 :] for done in range(len(steps))], name


@pytest.mark.parametrize("world", [4, 3, 1])
def test_other_numbers_of_ranks_go_on_with_what_is_left(world, runs):
    for name, case in cases_of(2):
        if case == WORKERS:
            continue
        whole, saved = order(case, LAST), whole_of(runs, 2, name, LAST)
        for done in range(len(saved[0])):
            before = together([steps[: done + 1] for steps in saved])
            rest = [rank["rest"][name][done] for rank in runs[world]]
            left = whole[len(before) :]
            if impossible(case, world, len(left)) or impossible(case, world, case.size):
                assert len(set(map(str, rest))) == 1
                assert "tail='exact' cannot deal" in rest[0]
                continue
            assert before == whole[: len(before)] or len(before) > case.size  # the last step is padded
            assert together(rest) == dealt(case, world, left, whole), f"{name} after {done + 1} steps"
            noise = together([steps[: done + 1] for steps in saved], "noise") + together(rest, "noise")
            assert len(set(noise)) == len(noise)


def test_one_epoch_goes_on_from_run_to_run(runs):
    """On 2 ranks, 4, 3 and 1, a few steps each: each sample once, and no random number twice."""
    legs = [[rank["relay"] for rank in runs[world]] for world in WORLDS]
    assert list(chain.from_iterable(map(together, legs))) == order(RELAY, 0)
    noise = list(chain.from_iterable(together(leg, "noise") for leg in legs))
    assert len(set(noise)) == len(noise) == RELAY.size


def test_too_few_samples_for_the_ranks_is_an_error_on_all_of_them(runs):
    few = Case(3, 2, "exact").name
    assert len({rank["whole"][few] for rank in runs[4]}) == 1
    assert "tail='exact' cannot deal all of 3 samples to 4 ranks" in runs[4][0]["whole"][few]
