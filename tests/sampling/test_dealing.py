"""Every way to deal a few samples to a few ranks, stopped anywhere and gone on with by any others."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from holdfast.sampling.dealing import TAILS, Deal

WORLDS = BATCH_SIZES = range(1, 6)


def deals(size: int, world: int, batch_size: int, tail: str, **more) -> list[Deal]:
    """One for each rank."""
    return [Deal(size, world, rank, batch_size, tail, **more) for rank in range(world)]


def dealt(ranks: list[Deal], steps: range | None = None) -> list[int]:
    """Of all ranks together, in the order of the cards."""
    rounds = range(ranks[0].steps) if steps is None else steps
    return [position for step in rounds for position in union(ranks, step)]


def union(ranks: list[Deal], step: int) -> list[int]:
    """What a step deals, one to each rank in turn."""
    hands = [list(rank.positions(step)) for rank in ranks]
    return [hand[turn] for turn in range(max(map(len, hands))) for hand in hands if turn < len(hand)]


def promised(left: int, size: int, world: int, tail: str) -> list[int]:
    """The last ``left`` positions of ``size``, as the tail has it: said once more, in other words than the code's."""
    order = list(range(size - left, size))
    if tail == "drop":
        return order[: left - left % world]
    if tail == "pad":
        source = list(range(size)) * world
        while len(order) % world:
            order.append(source.pop(0))
    return order


def possible(left: int, world: int, batch_size: int, tail: str) -> bool:
    return tail != "exact" or left % world == 0 or (batch_size > 1 and left > world)


def every(tails=TAILS, sizes=range(24)):
    for size, world, batch_size, tail in product(sizes, WORLDS, BATCH_SIZES, tails):
        if possible(size, world, batch_size, tail):
            yield size, world, batch_size, tail


def test_all_ranks_together_get_what_is_promised_in_order():
    for size, world, batch_size, tail in every():
        assert dealt(deals(size, world, batch_size, tail)) == promised(size, size, world, tail), (size, world, tail)


def test_every_rank_has_as_many_steps_and_no_step_is_empty():
    for how in every():
        ranks = deals(*how)
        assert len({rank.steps for rank in ranks}) == 1
        for step in range(ranks[0].steps):
            counts = [len(rank.positions(step)) for rank in ranks]
            assert min(counts) >= 1, (how, step)
            assert max(counts) <= ranks[0].batch_size, (how, step)
            assert max(counts) - min(counts) <= (how[3] == "exact"), (how, step)


def test_only_the_last_step_is_short_and_the_one_before_it_if_it_gave_some_up():
    for size, world, batch_size, tail in every():
        ranks = deals(size, world, batch_size, tail)
        sizes = [len(union(ranks, step)) for step in range(ranks[0].steps)]
        full = world * batch_size
        gave_up = tail == "exact" and 0 < size % full < world
        assert all(count == full for count in sizes[: -2 if gave_up else -1])
        if gave_up:
            assert sizes[-2:] == [full - world + size % full, world]


def test_after_any_step_what_is_consumed_is_a_beginning_of_the_order():
    for size, world, batch_size, tail in every():
        ranks = deals(size, world, batch_size, tail)
        for steps in range(ranks[0].steps + 1):
            (consumed,) = {rank.consumed(steps) for rank in ranks}
            assert dealt(ranks, range(steps))[:consumed] == list(range(consumed))
            assert len(dealt(ranks, range(steps))) == consumed or (tail == "pad" and steps == ranks[0].steps)


def test_a_step_beyond_the_last_deals_nothing():
    for how in every():
        for rank in deals(*how):
            assert not rank.positions(rank.steps)
            assert rank.consumed(rank.steps + 1) == rank.consumed(rank.steps)


def stops(tail: str):
    """Every place to stop, in every way to have come there."""
    for size, world, batch_size, _ in every([tail], sizes=(1, 5, 11, 12, 16)):
        ranks = deals(size, world, batch_size, tail)
        for steps in range(ranks[0].steps + 1):
            yield size, dealt(ranks, range(steps)), ranks[0].consumed(steps)


@pytest.mark.parametrize("tail", TAILS)
def test_others_go_on_from_anywhere(tail: str):
    """Exact: each sample once. Drop: fewer than there are ranks are left out. Pad: only the padding is given again."""
    for size, before, offset in stops(tail):
        for world, batch_size in product(WORLDS, BATCH_SIZES):
            left = size - offset
            if not possible(left, world, batch_size, tail):
                continue
            after = dealt(deals(size, world, batch_size, tail, offset=offset))
            given = Counter(before[:offset] + after)
            missing, again = Counter(range(size)) - given, given - Counter(range(size))
            assert missing.total() == (left % world if tail == "drop" else 0)
            assert again.total() == (-left % world if tail == "pad" else 0)
            assert after == promised(left, size, world, tail)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("tail", TAILS)
def test_the_same_go_on_as_if_they_had_not_stopped(tail: str, drop_last: bool):
    for how in every([tail]):
        for rank in deals(*how, drop_last=drop_last):
            whole = [list(rank.positions(step)) for step in range(rank.steps)]
            for steps in range(rank.steps + 1):
                offset = rank.consumed(steps)
                rest = Deal(rank.size, rank.world, rank.rank, rank.batch_size, tail, offset, drop_last)
                assert [list(rest.positions(step)) for step in range(rest.steps)] == whole[steps:], (how, steps)


def test_drop_last_leaves_out_the_steps_that_are_not_full_on_every_rank():
    for size, world, batch_size, tail in product(range(24), WORLDS, BATCH_SIZES, TAILS):
        full = world * batch_size
        ranks = deals(size, world, batch_size, tail, drop_last=True)
        order = promised(size, size, world, tail)
        assert dealt(ranks) == order[: len(order) - len(order) % full]
        assert all(len(rank.positions(step)) == batch_size for rank in ranks for step in range(rank.steps))


def test_a_batch_is_a_range_unless_it_is_padded():
    """A slice of the order is a view of it; only the last batch of some ranks needs more."""
    for size, world, batch_size, tail in every():
        for rank in deals(size, world, batch_size, tail):
            last = rank.steps - 1 if tail == "pad" and size % world else rank.steps
            assert all(isinstance(rank.positions(step), range) for step in range(last))


def test_what_exact_cannot_do_is_said_by_every_rank():
    tried = 0
    for size, world, batch_size in product(range(24), WORLDS, BATCH_SIZES):
        if not possible(size, world, batch_size, "exact"):
            for rank in range(world):
                with pytest.raises(ValueError, match=r"tail='exact' cannot deal .* Use .*tail='pad'.*tail='drop'"):
                    Deal(size, world, rank, batch_size, "exact")
            tried += 1
    assert tried > 100


@pytest.mark.parametrize(
    ("how", "advice"),
    [
        ({"size": 7, "world": 3, "batch_size": 1}, "all of 7 samples to 3 ranks .* Use a batch_size of 2 or more, or "),
        ({"size": 2, "world": 3, "batch_size": 8}, "all of 2 samples to 3 ranks .* Use a world size of at most 2, or "),
        ({"size": 9, "world": 3, "batch_size": 8, "offset": 8}, "the last 1 of 9 samples .* of at most 1, or "),
        ({"size": 3, "world": 4, "batch_size": 1}, "Use a world size of at most 3 and a batch_size of 2 or more, or "),
    ],
)
def test_the_ways_out_are_those_that_help(how: dict[str, int], advice: str):
    with pytest.raises(ValueError, match=advice):
        Deal(**how, rank=0, tail="exact")


def test_nothing_left_is_no_steps():
    for tail, world in product(TAILS, WORLDS):
        rest = Deal(7, world, 0, 2, tail, offset=7)
        assert (rest.steps, rest.consumed(0), list(rest.positions(0))) == (0, 7, [])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"size": -1}, "size should be at least 0, but got size=-1"),
        ({"world": 0}, "world should be at least 1, but got world=0"),
        ({"rank": 2}, "rank should be 0 to 1, but got rank=2"),
        ({"rank": -1}, "rank should be 0 to 1, but got rank=-1"),
        ({"batch_size": 0}, "batch_size should be at least 1, but got batch_size=0"),
        ({"tail": "wrap"}, "tail should be one of 'pad', 'drop', 'exact', but got tail='wrap'"),
        ({"offset": 11}, "offset should be 0 to 10, but got offset=11"),
        ({"offset": -1}, "offset should be 0 to 10, but got offset=-1"),
    ],
)
def test_wrong_numbers_are_refused(wrong: dict[str, int], said: str):
    with pytest.raises(ValueError, match=said):
        Deal(**{"size": 10, "world": 2, "rank": 0, "batch_size": 2, **wrong})
