"""In the place of torch's: the same indices, one order for any number of ranks, and wrong arguments refused."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import textwrap
from itertools import product

import pytest
import torch
import torch.utils.data
from hypothesis import given
from hypothesis import strategies as st

from holdfast.sampling.distributed import DistributedSampler

WORLDS = st.integers(1, 9)
SIZES = st.integers(1, 60)
EPOCHS = st.integers(0, 2**40)


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch):
    for name in ("WORLD_SIZE", "RANK"):
        monkeypatch.delenv(name, raising=False)


def batches(sampler: DistributedSampler, epoch: int, batch_size: int, **how) -> list[list[int]]:
    """As a loader makes them."""
    deal = sampler.deal(batch_size, **how)
    return [sampler.indices(deal.positions(step), epoch) for step in range(deal.steps)]


# -- torch's -----------------------------------------------------------------------------------


@given(SIZES, WORLDS, st.booleans(), st.booleans(), EPOCHS, st.integers(0, 99))
def test_every_rank_gets_what_torch_gives_it(size, world, shuffle, drop_last, epoch, seed):
    for rank in range(world):
        arguments = range(size), world, rank, shuffle, seed, drop_last
        ours, torchs = DistributedSampler(*arguments), torch.utils.data.DistributedSampler(*arguments)
        ours.set_epoch(epoch)
        torchs.set_epoch(epoch)
        assert list(ours) == list(torchs)
        assert len(ours) == len(torchs)
        assert (ours.num_samples, ours.total_size) == (torchs.num_samples, torchs.total_size)


@given(SIZES, WORLDS, st.integers(1, 7), st.booleans(), st.booleans(), st.booleans())
def test_every_rank_gets_the_batches_that_torch_makes(size, world, batch_size, shuffle, drop_samples, drop_batches):
    for rank in range(world):
        arguments = range(size), world, rank, shuffle, 3, drop_samples
        torchs = torch.utils.data.DistributedSampler(*arguments)
        expected = list(torch.utils.data.BatchSampler(torchs, batch_size, drop_batches))
        assert batches(DistributedSampler(*arguments), 0, batch_size, drop_last=drop_batches) == expected


def test_it_is_one_of_torchs():
    """Frameworks look for torch's class, to leave such a sampler alone or to call its set_epoch."""
    sampler = DistributedSampler(range(10), 2, 1)
    assert isinstance(sampler, torch.utils.data.DistributedSampler)
    assert (sampler.num_replicas, sampler.rank, sampler.seed, sampler.shuffle) == (2, 1, 0, True)


@pytest.mark.parametrize("how", [{"drop_last": True}, {"tail": "drop"}, {"drop_last": True, "tail": "drop"}])
def test_drop_last_and_the_tail_drop_are_one(how):
    sampler = DistributedSampler(range(10), 3, 0, **how)
    assert (sampler.drop_last, sampler.tail, len(sampler)) == (True, "drop", 3)


def test_what_it_says_of_itself_makes_another_like_it():
    for tail in ("pad", "drop", "exact"):
        first = DistributedSampler(range(10), 3, 1, seed=4, tail=tail)
        names = "dataset", "num_replicas", "rank", "shuffle", "seed", "drop_last", "tail"
        assert list(DistributedSampler(**{name: getattr(first, name) for name in names})) == list(first)


# -- one order ---------------------------------------------------------------------------------


@given(SIZES, WORLDS, st.booleans())
def test_exact_alone_is_every_nth_without_padding(size, world, shuffle):
    given = []
    for rank in range(world):
        sampler = DistributedSampler(range(size), world, rank, shuffle, tail="exact")
        assert len(list(sampler)) == len(sampler) == sampler.num_samples
        given += sampler
    assert sorted(given) == list(range(size))
    assert sampler.total_size == size


@given(st.integers(20, 60), EPOCHS, st.data())
def test_a_run_goes_on_with_other_ranks_and_no_sample_is_lost_or_repeated(size, epoch, data):
    """Up to four runs, each with its own number of ranks and batch size, in one epoch."""
    whole = DistributedSampler(range(size), 1, 0).order(epoch).tolist()
    seen, offset = [], 0
    while offset < size:
        world, batch_size = data.draw(st.integers(1, min(5, size - offset))), data.draw(st.integers(2, 5))
        ranks = [DistributedSampler(range(size), world, rank, tail="exact") for rank in range(world)]
        deal = ranks[0].deal(batch_size, offset=offset)
        steps = data.draw(st.integers(1, deal.steps))
        for rank in ranks:
            seen += [index for batch in batches(rank, epoch, batch_size, offset=offset)[:steps] for index in batch]
        offset = deal.consumed(steps)
        assert sorted(seen) == sorted(whole[:offset])
    assert sorted(seen) == list(range(size))


def test_the_order_does_not_depend_on_the_ranks():
    orders = [
        DistributedSampler(range(50), world, rank, seed=5).order(3) for world in (1, 2, 7) for rank in range(world)
    ]
    assert all(torch.equal(order, orders[0]) for order in orders)
    assert sorted(orders[0].tolist()) == list(range(50))


def test_the_order_of_an_epoch_is_drawn_once():
    sampler = DistributedSampler(range(50), 2, 0)
    first = sampler.order(1)
    assert sampler.order(1) is first
    assert not torch.equal(sampler.order(2), first)
    assert torch.equal(sampler.order(1), first)
    sampler.seed = 9
    assert not torch.equal(sampler.order(1), first)
    sampler.shuffle = False
    assert sampler.order(1) == range(50)


def test_no_epoch_named_is_the_one_that_is_set():
    sampler = DistributedSampler(range(50), 2, 1)
    sampler.set_epoch(4)
    assert torch.equal(sampler.order(), sampler.order(4))
    assert list(sampler) == sampler.order(4)[1::2].tolist()


def test_it_knows_whether_an_epoch_was_ever_set():
    sampler = DistributedSampler(range(10), 2, 0)
    assert not sampler.epoch_is_set
    sampler.set_epoch(0)
    assert sampler.epoch_is_set


def test_the_trainers_random_numbers_are_left_alone():
    state = torch.get_rng_state()
    list(DistributedSampler(range(10), 2, 0))
    assert torch.equal(torch.get_rng_state(), state)


def test_the_default_device_changes_nothing():
    expected = list(DistributedSampler(range(10), 2, 0))
    with torch.device("meta"):
        assert list(DistributedSampler(range(10), 2, 0)) == expected


@pytest.mark.parametrize("shuffle", [False, True])
def test_indices_are_plain_numbers(shuffle):
    sampler = DistributedSampler(range(5), 4, 3, shuffle)
    assert all(type(index) is int for batch in batches(sampler, 0, 2) for index in batch)
    assert all(type(index) is int for index in sampler)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda sampler: pickle.loads(pickle.dumps(sampler))])
def test_a_copy_goes_on_without_the_order(again):
    sampler = DistributedSampler(range(100_000), 2, 0, tail="exact")
    sampler.set_epoch(3)
    expected = list(sampler)
    assert len(pickle.dumps(sampler)) < 1000
    copied = again(sampler)
    assert (list(copied), copied.epoch_is_set) == (expected, True)
    assert sampler.order(3) is sampler.order(3)


# -- where it is -------------------------------------------------------------------------------


def test_alone_it_is_rank_0_of_1():
    sampler = DistributedSampler(range(10))
    assert (sampler.num_replicas, sampler.rank) == (1, 0)


def test_without_a_process_group_it_is_where_torchrun_says(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "3")
    for arguments in ((), (4,), (None, 3)):
        sampler = DistributedSampler(range(10), *arguments)
        assert (sampler.num_replicas, sampler.rank) == (4, 3)
    assert DistributedSampler(range(10), 2, 1).num_replicas == 2


@pytest.mark.parametrize(
    ("surroundings", "arguments", "said"),
    [
        ({"WORLD_SIZE": "4"}, (), "RANK is not set"),
        ({}, (4,), "RANK is not set"),
        ({"WORLD_SIZE": "four", "RANK": "0"}, (), "WORLD_SIZE is 'four'"),
        ({"WORLD_SIZE": "2", "RANK": ""}, (), "RANK is ''"),
    ],
)
def test_a_rank_is_never_guessed(monkeypatch, surroundings, arguments, said):
    """Every rank would take itself for rank 0, and all of them get the same samples."""
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"{said} in the environment. Give num_replicas and rank"):
        DistributedSampler(range(10), *arguments)


@pytest.mark.slow
def test_in_a_process_group_it_is_where_that_says(tmp_path):
    """Two real ranks, whose environment says something else."""
    program = textwrap.dedent(
        f"""
        import sys
        import torch.distributed as group
        from holdfast.sampling.distributed import DistributedSampler

        meeting = "file://{tmp_path}/meeting"
        group.init_process_group("gloo", init_method=meeting, rank=int(sys.argv[1]), world_size=2)
        sampler = DistributedSampler(range(7), shuffle=False, tail="exact")
        print(sampler.num_replicas, sampler.rank, list(sampler))
        group.barrier()
        group.destroy_process_group()
        """
    )
    elsewhere = {**os.environ, "WORLD_SIZE": "5", "RANK": "4"}
    commands = [[sys.executable, "-c", program, str(rank)] for rank in range(2)]
    ranks = [subprocess.Popen(command, stdout=subprocess.PIPE, env=elsewhere, text=True) for command in commands]
    try:
        said = [rank.communicate(timeout=100)[0].strip() for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()  # one that failed leaves the other waiting for it
            rank.communicate()
    assert said == ["2 0 [0, 2, 4, 6]", "2 1 [1, 3, 5]"]


# -- what it refuses ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"rank": 2}, r"Invalid rank 2, rank should be in the interval \[0, 1\]"),
        ({"rank": -1}, "Invalid rank -1"),
        ({"num_replicas": 0}, "num_replicas should be at least 1, but got num_replicas=0"),
        ({"tail": "wrap"}, "tail should be one of 'pad', 'drop', 'exact', but got tail='wrap'"),
        ({"tail": "pad", "drop_last": True}, "drop_last=True is another word for tail='drop', but got tail='pad'"),
        ({"tail": "exact", "drop_last": True}, "but got tail='exact'"),
        ({"dataset": []}, r"the data set \(list\) is empty"),
    ],
)
def test_wrong_arguments_are_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        DistributedSampler(**{"dataset": range(10), "num_replicas": 2, "rank": 0, **arguments})


def test_a_data_set_that_grew_is_noticed():
    """Its new samples would never be given, or other ranks count otherwise."""
    dataset = [0] * 10
    sampler = DistributedSampler(dataset, 2, 0)
    dataset.append(0)
    for use in (lambda: iter(sampler), lambda: sampler.deal(2)):
        with pytest.raises(ValueError, match="has 11 samples, and had 10 when this sampler was made"):
            use()


def test_exact_is_refused_where_a_rank_would_be_without_a_batch():
    for world, batch_size in product(range(2, 5), range(1, 4)):
        with pytest.raises(ValueError, match="tail='exact' cannot deal all of 1 samples"):
            DistributedSampler(range(1), world, 0, tail="exact").deal(batch_size)
