"""Which sample takes a place: a function of seed, batch and place, whatever the order in which faults were met."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from holdfast import Ledger, Retry, Skip, Unaccounted
from holdfast._core.refill import NEIGHBOURS, Refill
from holdfast._engine.cases import Case
from holdfast._engine.draws import Draws
from holdfast._engine.judge import Judge, Whose
from holdfast._engine.population import population
from holdfast._transport.messages import Plan, Report
from holdfast.policies import Leave, Put, Repeat

seeds = st.integers(0, 2**63)
few = settings(max_examples=60, deadline=None)


def of(size: int, seed: int = 1) -> Refill:
    return Refill(seed, range(size), lambda batch, number: (), lambda batch, number: ())


# -- choosing ----------------------------------------------------------------------------------


@few
@given(seed=seeds, size=st.integers(1, 50), batch=st.integers(0, 10**6), data=st.data())
def test_a_choice_is_fit_and_new_to_the_batch_if_anything_is(seed, size, batch, data):
    own = data.draw(st.lists(st.integers(0, size - 1), unique=True, max_size=8))
    bad = data.draw(st.sets(st.integers(0, size - 1)))
    good = set(range(size)) - bad
    refill = of(size, seed)
    if not good:
        with pytest.raises(LookupError):
            refill.choose(batch, 0, own, good.__contains__)
        return
    chosen = refill.choose(batch, 0, own, good.__contains__)
    assert chosen in good
    assert chosen not in own or not good - set(own)
    assert chosen == of(size, seed).choose(batch, 0, own, good.__contains__)


def test_choices_are_spread_over_the_population():
    refill = of(100)
    chosen = [refill.choose(batch, 0, [], lambda index: True) for batch in range(300)]
    assert len(set(chosen)) > 80


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (SequentialSampler(range(5)), [0, 1, 2, 3, 4]),
        (RandomSampler(range(5)), [0, 1, 2, 3, 4]),
        (BatchSampler(RandomSampler(range(5)), 2, False), [0, 1, 2, 3, 4]),
        (BatchSampler(SubsetRandomSampler([7, 3]), 2, False), [7, 3]),
        (DistributedSampler(range(4), num_replicas=2, rank=0), [0, 1, 2, 3]),
        (WeightedRandomSampler([0.0, 1.0], 3), None),
        ([[0, 1], [2]], None),
        (type("Mine", (RandomSampler,), {})(range(5)), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_sampler_chooses_from(sampler, expected):
    found = population(sampler)
    assert (None if found is None else list(found)) == expected


def test_where_a_list_is_one_index_a_number_is_none():
    assert population(BatchSampler(SequentialSampler(range(5)), 2, False), lists=False) is None


# -- neighbours --------------------------------------------------------------------------------


@few
@given(data=st.data())
def test_neighbours_do_not_depend_on_what_was_drawn_or_delivered_meanwhile(data):
    total = data.draw(st.integers(1, 30))
    batches = [[2 * number, 2 * number + 1] for number in range(total)]
    target = data.draw(st.integers(0, total - 1))
    drawn = data.draw(st.integers(target + 1, total))
    draws = Draws(iter(batches).__next__)
    for _ in range(drawn):
        draws.next()
    others = data.draw(st.permutations([number for number in range(drawn) if number != target]))
    for number in others[: data.draw(st.integers(0, len(others)))]:
        draws.deliver(number)
    before = [batches[n] for n in range(target - 1, target - 1 - NEIGHBOURS, -1) if n >= 0]
    after = [batches[n] for n in range(target + 1, target + 1 + NEIGHBOURS) if n < total]
    assert list(draws.before(target, NEIGHBOURS)) == [index for batch in before for index in batch]
    assert list(draws.after(target, NEIGHBOURS)) == [index for batch in after for index in batch]
    assert [draws.next() for _ in range(total - drawn)] == batches[drawn:]
    with pytest.raises(StopIteration):
        draws.next()


def test_what_was_delivered_is_forgotten_when_it_is_nobodys_neighbour():
    draws = Draws(count().__next__, lists=False)
    for number in range(1000):
        draws.next()
        draws.deliver(number)
    assert len(draws._delivered) <= 2 * NEIGHBOURS


def test_an_error_of_the_sampler_is_told_in_its_turn():
    def sample():
        yield [0]
        yield [1]
        raise RuntimeError("no more weights")

    draws = Draws(sample().__next__)
    draws.next()
    assert list(draws.after(0, NEIGHBOURS)) == [1]
    assert draws.next() == [1]
    with pytest.raises(RuntimeError, match="no more weights"):
        draws.next()


def test_an_index_that_is_a_tuple_is_one_neighbour_where_batches_are_single():
    draws = Draws(iter([("a", 1), ("b", 2)]).__next__, lists=False)
    draws.next()
    draws.next()
    assert list(draws.before(1, NEIGHBOURS)) == [("a", 1)]


# -- a batch -----------------------------------------------------------------------------------


@few
@given(seed=seeds, data=st.data())
def test_a_batch_is_the_same_however_its_faults_were_met(seed, data):
    """All at once, one by one in any order, or with stand-ins that fail as well before they are known to."""
    indices = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=6, unique=True))
    bad = data.draw(st.sets(st.integers(0, 30), max_size=20))
    answer = data.draw(st.sampled_from([Leave(), Leave(refill=False), Repeat(), Put("x")]))
    refill = of(31, seed)
    known = Case(3, indices)
    late = Case(3, indices)
    try:
        for place, index in enumerate(indices):
            if index in bad:
                known.amend(place, answer, refill, lambda each: each not in bad)
    except LookupError:
        return
    found: set[int] = set()
    while failing := [(place, index) for place, index in late.slots if index in bad and not _given(late, place)]:
        place, index = data.draw(st.sampled_from(failing))
        found.add(index)
        late.amend(place, answer, refill, lambda each: each not in found)
    assert late.slots == known.slots
    assert late.plan() == known.plan()


def _given(case: Case, place: int) -> bool:
    return isinstance(case.gone.get(place), Put)


def test_when_a_place_cannot_be_filled_nothing_has_changed():
    case = Case(0, [1, 2])
    case.amend(0, Leave(refill=False), of(5), lambda index: True)
    with pytest.raises(LookupError, match="refill=False leaves nothing"):
        case.amend(1, Leave(refill=False), of(5), lambda index: True)
    assert (case.slots, list(case.gone)) == ([(1, 2)], [0])


def test_a_plan_gives_values_by_position():
    case = Case(0, [4, 5, 6])
    case.amend(0, Leave(refill=False), of(9), lambda index: True)
    case.amend(2, Put("six"), of(9), lambda index: True)
    assert case.plan() == Plan([5, 6], {1: "six"}, False)
    assert case.instead_of(2) is None


# -- the count ---------------------------------------------------------------------------------


def judge(on_error: Any, size: int = 31) -> Judge:
    found = Judge(on_error, Ledger(warn=False), lambda index: "", auto_collation=True)
    found.begin(0, of(size))
    return found


@few
@given(data=st.data())
def test_delivered_and_ledger_make_up_the_epoch(data):
    """Whatever fails, in whatever order, for whatever reason: nothing is counted twice or not at all."""
    bad = data.draw(st.sets(st.integers(0, 30), max_size=25))
    on_error = data.draw(
        st.sampled_from([Skip(), Skip(refill=False), Skip(limit=3), Retry(1, backoff=0) | Skip(), Retry(1, backoff=0)])
    )
    bench = judge(on_error)
    batches = [list(range(first, min(first + 4, 31))) for first in range(0, 31, 4)] + [[1, 1, 2]]
    for batch, indices in enumerate(batches):
        bench.draw(batch, indices)
    for batch in data.draw(st.permutations(range(len(batches)))):
        loaded = _loaded(bench, batch, batches[batch], bad)
        assert loaded is None or {index for index in batches[batch] if index not in bad} <= set(loaded) - bad
        bench.deliver(batch, batches[batch], is_error=loaded is None)
    bench.finish()
    assert bench.ledger.seen == 34


def _loaded(bench: Judge, batch: int, indices: list[int], bad: set[int]) -> list[int] | None:
    """The indices of the batch in the end; None when it is an error."""
    for _ in range(100):
        plan = bench.plan(batch, indices)
        failed = [place for place, index in enumerate(plan) if index in bad]
        if not failed:
            return list(plan)
        reports = [Report(place, ValueError("bad"), "", "", False, False) for place in failed]
        ruling = bench.failed(batch, indices, reports, Whose())
        if ruling.error is not None:
            return None
    raise AssertionError("it is tried forever")


def test_a_sample_that_is_neither_delivered_nor_in_the_ledger_is_an_error():
    bench = judge(Skip())
    bench.draw(0, [1, 2])
    with pytest.raises(Unaccounted, match="2 samples were drawn, 0 delivered, 0 are in the ledger"):
        bench.finish()
