"""A stream with samples left out is the same, bit by bit, for any number of workers and after any death."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import BatchSampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler
from trials import Noisy, OwnNoise, contents, indices, trial

from holdfast import Replace, Skip
from holdfast.testing import DiesAt, Faulty, HangsAt, RaisesAt, StopsAt

BAD = (3, 9, 10, 17)


def faulty(dataset=None, *more):
    return Faulty(dataset or Noisy(), *(RaisesAt(index, lambda: ValueError("bad")) for index in BAD), *more)


def undisturbed(**options):
    """By the trainer itself, which cannot be killed."""
    return contents(trial(faulty(), "trainer", **options))


@pytest.mark.parametrize("on_error", ["skip", Skip(refill=False), "replace", Replace((99, torch.zeros(1), 0.0, 0.0))])
def test_shuffled_and_for_any_number_of_processes(on_error):
    """Also with a worker killed on the way, and in a second epoch, in which the bad ones are known."""
    options = {"shuffle": True, "on_error": on_error}
    alone = trial(faulty(), "trainer", **options)
    expected = contents(alone), contents(alone)
    assert expected[0] != expected[1]
    for workers, fault in ((1, ()), (2, (DiesAt(12, once=True),)), (4, (DiesAt(1, once=True), DiesAt(11, once=True)))):
        loader = trial(faulty(None, *fault), num_workers=workers, **options)
        assert (contents(loader), contents(loader)) == expected
        assert loader.faults.bad == set(BAD)


def test_for_any_number_of_threads():
    expected = contents(trial(faulty(OwnNoise()), "threads", num_workers=1, shuffle=True, on_error="skip"))
    for workers in (2, 4):
        loader = trial(faulty(OwnNoise()), "threads", num_workers=workers, shuffle=True, on_error="skip")
        assert contents(loader) == expected
    alone = trial(faulty(), "trainer", shuffle=True, on_error="skip")
    assert [row[0] for row in expected] == indices(alone)


@pytest.mark.parametrize("fault", [DiesAt(14), StopsAt(14), HangsAt(14)], ids=str)
def test_whatever_the_way_in_which_a_sample_fails(fault):
    """Poison and stalls leave the same stream as an exception; with sampler, seed and number of workers as they are."""
    expected = contents(trial(faulty(None, RaisesAt(14, lambda: OSError("bad"))), "trainer", on_error="skip"))
    loader = trial(faulty(None, fault), on_error="skip", stall_timeout=1, prefetch_factor=1)
    assert contents(loader) == expected


def test_the_trainers_own_random_numbers_are_left_alone():
    """With no workers, samples are loaded once more to see which fail: the trainer's generators must not notice."""
    found = []
    for dataset in (Noisy(), faulty()):
        torch.manual_seed(5)
        contents(trial(dataset, "trainer", on_error="skip"))
        found.append(torch.rand(1).item())
    assert found[0] == found[1]


def test_an_order_that_is_not_kept_has_the_same_batches():
    options = {"on_error": "skip", "sampler": list(range(24))}
    loader = trial(faulty(None, DiesAt(1, once=True)), in_order=False, **options)
    assert sorted(contents(loader)) == sorted(undisturbed(**options))


# -- never a sample that the sampler would not choose ------------------------------------------

ALLOWED = [2, 3, 5, 8, 9, 10, 12, 15, 16, 17, 20, 21]


class Mine:
    """A sampler of the user's own, of which nothing is known."""

    def __iter__(self):
        return iter(ALLOWED)

    def __len__(self):
        return len(ALLOWED)


@pytest.mark.parametrize(
    "choose",
    [
        lambda: {"sampler": SubsetRandomSampler(ALLOWED, torch.Generator().manual_seed(3))},
        lambda: {"sampler": Mine()},
        lambda: {"batch_sampler": BatchSampler(Mine(), 5, False)},
        lambda: {"batch_sampler": [tuple(ALLOWED[n : n + 5]) for n in range(0, 12, 5)]},
        lambda: {"batch_sampler": [torch.tensor(ALLOWED[n : n + 4]) for n in range(0, 12, 4)]},
        lambda: {
            "sampler": WeightedRandomSampler(
                [float(n in ALLOWED) for n in range(24)], 16, generator=torch.Generator().manual_seed(1)
            )
        },
    ],
    ids=["subset", "own", "batches of own", "tuples", "tensors", "weighted"],
)
def test_only_what_the_sampler_chooses_takes_a_place(choose):
    expected = undisturbed(on_error="skip", **choose())
    loader = trial(faulty(None, DiesAt(15, once=True)), on_error="skip", **choose())
    found = contents(loader)
    assert found == expected
    assert {index for row in found for index in row[0]} <= set(ALLOWED) - set(BAD)


@pytest.mark.parametrize("crew", ["trainer", "processes", "threads"])
def test_a_batch_of_one_without_a_list_is_refilled_too(crew):
    loader = trial(faulty(), crew, batch_size=None, on_error="skip")
    found = [sample[0] for sample in loader]
    assert [n for n in range(24) if found[n] != n] == list(BAD)
    assert not set(found) & set(BAD)


class ByTheList(Noisy):
    """Is asked for lists of indices, by a batch sampler in the place of a sampler."""

    def __getitem__(self, index):
        if isinstance(index, list) and 9 in index:
            raise ValueError("bad")
        return torch.tensor(index)


@pytest.mark.parametrize("crew", ["trainer", "processes"])
def test_where_an_index_is_a_list_another_list_takes_its_place(crew):
    sampler = BatchSampler(SequentialSampler(range(24)), 4, False)
    found = [batch.tolist() for batch in trial(ByTheList(), crew, batch_size=None, sampler=sampler, on_error="skip")]
    assert found == [[0, 1, 2, 3], [4, 5, 6, 7], [4, 5, 6, 7], *([n, n + 1, n + 2, n + 3] for n in (12, 16, 20))]


# -- known ones --------------------------------------------------------------------------------


class Counted(Noisy):
    """Writes down every index that it is asked for."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def __getitem__(self, index):
        with open(self.path, "a") as file:
            file.write(f"{index}\n")
        if index in BAD:
            raise FileNotFoundError(2, "No such file", f"/data/{index}.jpg")
        return super().__getitem__(index)


@pytest.mark.parametrize("options", [{"persistent_workers": True}, {}], ids=["persistent", "new workers"])
def test_a_known_bad_sample_is_not_fetched_again(options, tmp_path):
    loader = trial(Counted(tmp_path / "asked"), on_error="skip", shuffle=True, **options)
    first = indices(loader)
    asked = (tmp_path / "asked").read_text().split()
    assert {int(index) for index in asked} >= set(BAD)
    (tmp_path / "asked").unlink()
    second = indices(loader)
    assert not {str(index) for index in BAD} & set((tmp_path / "asked").read_text().split())
    assert [len(batch) for batch in first + second] == [4] * 12
    known = loader.faults.filter(action="known bad")
    assert sorted(each.index for each in known) == list(BAD)
    assert {each.where for each in known} == {f"/data/{index}.jpg" for index in BAD}
    assert all(each.error.errno == 2 and each.epoch == 1 and each.attempts == 0 for each in known)
