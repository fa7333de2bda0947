"""Random numbers hang on the batch, not on who loads it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy
import pytest
import torch
import torch.utils.data
from small_datasets import Squares, Stream

from holdfast import DataLoader
from holdfast._worker import seeds
from holdfast._worker.seeds import Enclosed, Fenced

Stock = torch.utils.data.DataLoader


class Augmented(Squares):
    """What augmentations draw, from each of the three global generators."""

    def __getitem__(self, index: int) -> Any:
        from_torch = [torch.rand(()).item(), torch.randn(()).item()]
        from_numpy = [numpy.random.rand(), numpy.random.randn()]
        return [index, *from_torch, *from_numpy, random.random(), random.gauss(0, 1)]


def keep(samples: list[Any]) -> Any:
    return samples


def epochs(count: int = 2, **options: Any) -> list[Any]:
    torch.manual_seed(1234)
    loader = DataLoader(Augmented(23), batch_size=4, shuffle=True, collate_fn=keep, **options)
    got = [list(loader) for _ in range(count)]
    if options.get("persistent_workers"):
        loader._iterator = None
    return got


def test_a_stream_is_bit_identical_for_any_number_of_workers():
    alone = epochs()
    assert alone[0] != alone[1]
    assert len({tuple(sample[1:]) for epoch in alone for batch in epoch for sample in batch}) == 46
    for workers in (1, 2, 4):
        assert epochs(num_workers=workers) == alone
        assert epochs(num_workers=workers, persistent_workers=True) == alone


def test_an_epoch_does_not_depend_on_how_far_the_one_before_was_read():
    def second(read: int, **options: Any) -> Any:
        torch.manual_seed(9)
        loader = DataLoader(Augmented(23), batch_size=4, collate_fn=keep, **options)
        for number, _ in enumerate(loader, 1):
            if number == read:
                break
        got = list(loader)
        loader._iterator = None
        return got

    expected = second(1)
    for workers in (1, 2):
        for persistent in (False, True):
            assert second(3, num_workers=workers, persistent_workers=persistent) == expected


def test_a_generator_of_ones_own_decides_order_and_seeds():
    def run(seed: int, **options: Any) -> Any:
        torch.manual_seed(torch.seed())
        generator = torch.Generator().manual_seed(seed)
        loader = DataLoader(Augmented(), batch_size=2, shuffle=True, generator=generator, collate_fn=keep, **options)
        return list(loader)

    assert run(5) == run(5, num_workers=2)
    assert run(5) != run(6)


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_the_shuffled_order_is_torchs_for_the_same_seed(own, workers, used):
    """Of the first epoch, unless it comes from a generator of one's own that was used before."""

    def order(make: Any) -> list[Any]:
        torch.manual_seed(77)
        generator = torch.Generator().manual_seed(5) if own else None
        if used:
            torch.rand(3)  # as a model does when it is made
        loader = make(Squares(50), batch_size=4, shuffle=True, generator=generator, num_workers=workers)
        return [[batch.tolist() for batch in loader] for _ in range(2)]

    ours, theirs = order(DataLoader), order(Stock)
    assert ours[0] == theirs[0]
    assert ours[1] != ours[0]
    if not own and not used:
        assert ours[1] == theirs[1]  # nobody else has drawn


def test_the_first_shuffled_order_of_persistent_workers_is_torchs_and_later_ones_are_as_without_them():
    def order(make: Any, **options: Any) -> list[Any]:
        torch.manual_seed(77)
        loader = make(Squares(50), batch_size=4, shuffle=True, num_workers=2, **options)
        got = [[batch.tolist() for batch in loader] for _ in range(2)]
        loader._iterator = None
        return got

    ours = order(DataLoader, persistent_workers=True)
    assert ours[0] == order(Stock, persistent_workers=True)[0]
    assert ours == order(Stock)


def test_loading_consumes_as_much_of_the_trainers_randomness_as_torchs_does():
    def after(make: Any, **options: Any) -> float:
        torch.manual_seed(77)
        list(make(Squares(), shuffle=True, **options))
        return torch.rand(()).item()

    for workers in (0, 2):
        assert after(DataLoader, num_workers=workers) == after(Stock, num_workers=workers)


def test_an_iterable_draws_the_same_for_the_same_number_of_workers():
    class Noisy(Stream):
        def __iter__(self) -> Iterator[Any]:
            start = torch.rand(()).item()
            for number in super().__iter__():
                yield [number, start, torch.rand(()).item(), numpy.random.rand(), random.random()]

    def run(**options: Any) -> Any:
        torch.manual_seed(4)
        return list(DataLoader(Noisy(12), batch_size=2, collate_fn=keep, **options))

    assert run() == run(num_workers=1)
    assert run(num_workers=2) == run(num_workers=2)
    assert len({sample[1] for batch in run(num_workers=2) for sample in batch}) == 2


# -- the trainer's own state ---------------------------------------------------------------------


def draws() -> list[float]:
    return [torch.rand(()).item(), torch.randn(()).item(), random.random(), random.gauss(0, 1)]


def numpy_draws() -> list[float]:
    return [numpy.random.rand(), numpy.random.randn(), numpy.random.randn(), float(numpy.random.randint(1 << 30))]


def seed_all() -> None:
    torch.manual_seed(3)
    random.seed(3)
    numpy.random.seed(3)
    random.gauss(0, 1)  # of a pair; the other one is kept for the next call
    numpy.random.randn()  # of a pair, too


@pytest.mark.parametrize("workers", [0, 1])
def test_loading_leaves_the_trainers_random_state_as_it_was(workers):
    loader = DataLoader(Augmented(), batch_size=3, collate_fn=keep, num_workers=workers)
    seed_all()
    batches = iter(loader)
    torch.manual_seed(3)  # making an iterator draws the seed of the epoch, as with torch
    list(batches)
    after = draws() + numpy_draws()
    seed_all()
    torch.manual_seed(3)
    assert after == draws() + numpy_draws()


def test_an_error_while_loading_leaves_the_trainers_random_state_as_it_was():
    class Broken(Augmented):
        def __getitem__(self, index: int) -> Any:
            super().__getitem__(index)
            raise ValueError("broken")

    batches = iter(DataLoader(Broken()))
    seed_all()
    with pytest.raises(ValueError, match="broken"):
        next(batches)
    after = draws() + numpy_draws()
    seed_all()
    assert after == draws() + numpy_draws()


def test_the_trainers_draws_do_not_change_the_batches():
    def run(disturb: bool, workers: int) -> Any:
        torch.manual_seed(8)
        got = []
        for batch in DataLoader(Augmented(), batch_size=3, collate_fn=keep, num_workers=workers):
            got.append(batch)
            if disturb:
                draws()
                numpy_draws()
        return got

    assert run(True, 0) == run(False, 0) == run(True, 1)


@pytest.fixture(params=["known memory", "unknown memory", "another bit generator"])
def numpys(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The ways to take numpy's state out: the quick one, and the one for a numpy or a generator that we do not know."""
    before = numpy.random.get_bit_generator()
    if request.param == "unknown memory":
        monkeypatch.setattr(seeds, "_memory_is_known", lambda: False)
    if request.param == "another bit generator":
        numpy.random.set_bit_generator(numpy.random.PCG64(3))
    yield
    numpy.random.set_bit_generator(before)


def states() -> list[Any]:
    of_numpy = numpy.random.get_state(legacy=False)
    key = of_numpy["state"].get("key")
    exactly = repr(of_numpy if key is None else [key.tolist(), *of_numpy["state"].items(), *of_numpy.items()])
    return [torch.get_rng_state().tolist(), random.getstate(), exactly, id(numpy.random.get_bit_generator())]


def test_the_memory_of_this_numpy_is_known():
    assert seeds._memory_is_known()


@pytest.mark.parametrize("gaussians", range(4))
def test_a_fence_puts_everything_back(numpys: None, gaussians: int):
    fence = Fenced()
    for times in range(3):
        numpy.random.randn(gaussians)
        before = states()
        with fence.seed(times, 7):
            draws() + numpy_draws() + [numpy.random.randn()]
        assert states() == before


def test_behind_a_fence_no_gaussian_is_left_over_from_before(numpys: None):
    def behind() -> list[float]:
        with fence.seed(1, 7):
            return [numpy.random.randn() for _ in range(3)]

    fence = Fenced()
    first = behind()
    numpy.random.randn()
    assert behind() == first


# -- an environment of its own ---------------------------------------------------------------------


def one_of_each(turn: int) -> list[float]:
    """An odd number of gaussians, so that each way out finds one kept or not by turns."""
    drawn = [torch.rand(()).item(), torch.randn(()).item(), random.random(), random.gauss(0, 1), numpy.random.randn()]
    return drawn + [numpy.random.rand() for _ in range(turn % 3)] + torch.randn(20).tolist()


def test_the_enclosed_and_the_trainer_do_not_notice_each_other(numpys: None):
    enclosed = Enclosed(5)
    with enclosed:
        pass
    numpy.random.randn()
    begun = torch.get_rng_state(), random.getstate(), numpy.random.get_state(legacy=False)
    inside, outside = [], []
    for turn in range(20):
        with enclosed:
            inside.append(one_of_each(turn))
        outside.append(one_of_each(turn))

    for setter, state in zip((torch.set_rng_state, random.setstate, numpy.random.set_state), begun):
        setter(state)
    assert outside == [one_of_each(turn) for turn in range(20)]
    numpy.random.set_bit_generator(numpy.random.MT19937())
    seeds.seed_all(5)
    assert inside == [one_of_each(turn) for turn in range(20)]


def test_two_enclosed_do_not_notice_each_other():
    def run(enclosed: Enclosed) -> list[float]:
        with enclosed:
            return one_of_each(1)

    alone = Enclosed(1)
    expected = [run(alone) for _ in range(5)]
    one, other = Enclosed(1), Enclosed(2)
    both = [(run(one), run(other)) for _ in range(5)]
    assert [first for first, _ in both] == expected
    assert all(first != second for first, second in both)


def test_to_enclose_leaves_the_trainers_random_state_as_it_was(numpys: None):
    numpy.random.randn()
    before = states()
    enclosed = Enclosed(3, drawn=(4, 2))
    assert states() == before
    with enclosed:
        pass
    assert states() == before


@pytest.mark.parametrize("error", [StopIteration, ValueError, KeyboardInterrupt])
def test_an_error_gets_out_of_the_enclosed_and_both_sides_go_on(error: type[BaseException]):
    whole = Enclosed(5)
    with whole:
        expected = [one_of_each(1), one_of_each(1)]
    enclosed, got = Enclosed(5), []

    def run() -> None:
        with enclosed:
            got.append(one_of_each(1))
            raise error

    before = states()
    for _ in range(2):
        with pytest.raises(error):
            run()
    assert states() == before
    assert got == expected


def test_a_bit_generator_that_is_set_inside_stays_inside():
    enclosed = Enclosed(5)
    before = states()
    with enclosed:
        numpy.random.set_bit_generator(numpy.random.PCG64(9))
        numpy.random.randn()
        kept = numpy.random.get_state(legacy=False)
    assert states() == before
    with enclosed:
        assert numpy.random.get_state(legacy=False) == kept


@pytest.mark.parametrize("count", [0, 1, 3, 700])
def test_what_is_enclosed_can_begin_where_seeds_were_drawn_from_torch(count: int):
    with Enclosed(5, drawn=(77, count)):
        got = [torch.initial_seed(), torch.rand(3).tolist(), torch.randn(()).item()]
        others = [random.random(), numpy.random.rand()]
    torch.manual_seed(77)
    for _ in range(count):
        torch.empty((), dtype=torch.int64).random_()
    assert got == [77, torch.rand(3).tolist(), torch.randn(()).item()]
    random.seed(5)
    numpy.random.seed(5)
    assert others == [random.random(), numpy.random.rand()]


# -- worker_init_fn ------------------------------------------------------------------------------


class Seed(Squares):
    def __getitem__(self, index: int) -> tuple[int, float]:
        return torch.initial_seed(), torch.rand(()).item()


def test_a_worker_init_fn_that_seeds_torch_has_its_way():
    def same_in_all(seat: int) -> None:
        torch.manual_seed(42)

    def run(outer: int, init: Any) -> Any:
        torch.manual_seed(outer)
        return list(DataLoader(Seed(), batch_size=2, collate_fn=keep, num_workers=2, worker_init_fn=init))

    assert run(1, same_in_all) == run(2, same_in_all)
    assert run(1, None) != run(2, None)
    samples = [sample for batch in run(1, same_in_all) for sample in batch]
    assert {seed for seed, _ in samples} == {42}
    assert len({drawn for _, drawn in samples}) == len(samples)


def test_a_worker_init_fn_that_reads_the_seed_gets_torchs():
    class Told(Squares):
        def __getitem__(self, index: int) -> Any:
            return torch.utils.data.get_worker_info().dataset.seeds

    def note(seat: int) -> None:
        info = torch.utils.data.get_worker_info()
        numpy_seed = numpy.random.get_state()[1][0]
        info.dataset.seeds = (seat, info.seed, torch.initial_seed(), int(numpy_seed))

    def run(make: Any) -> Any:
        torch.manual_seed(6)
        return sorted(set(make(Told(), batch_size=None, num_workers=2, collate_fn=tuple, worker_init_fn=note)))

    assert run(DataLoader) == run(Stock)
