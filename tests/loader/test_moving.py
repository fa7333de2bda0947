"""Large samples that are moved to their place in the batch as they come."""

from __future__ import annotations

import numpy
import pytest
import torch
from torch.utils.data import Dataset, default_collate

from holdfast import DataLoader
from holdfast._worker.moving import LARGE, Mover

SIDE = 200  # 40,000 bytes a channel
COUNT = 24


def image(index: int) -> numpy.ndarray:
    return numpy.full((3, SIDE, SIDE), index, numpy.uint8)


class Images(Dataset):
    """Made anew each time, in the form that `make` gives them; the list of forms is below."""

    def __init__(self, make):
        self.make = make

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return self.make(index)


FORMS = {
    "an array": image,
    "a tensor": lambda index: torch.from_numpy(image(index)),
    "a tuple": lambda index: (torch.from_numpy(image(index)), index),
    "two large parts": lambda index: (image(index), torch.full((50_000,), float(index)), f"{index}.jpg"),
    "a dict": lambda index: {"image": torch.from_numpy(image(index)), "label": index, "name": str(index)},
    "a list": lambda index: [torch.from_numpy(image(index)), index],
    "a permuted view": lambda index: torch.from_numpy(image(index)).permute(1, 2, 0),
    "a transposed array": lambda index: (image(index).transpose(1, 2, 0), index),
    "the same twice": lambda index: (lambda one: (one, one))(torch.from_numpy(image(index))),
    "of no type of numpy's": lambda index: torch.full((LARGE,), float(index), dtype=torch.bfloat16),
    "nested": lambda index: {"inputs": {"image": image(index)}, "label": index},
    "requires no grad": lambda index: torch.full((LARGE,), float(index), requires_grad=True).detach(),
}


def values(batch):
    if isinstance(batch, dict):
        return {key: values(part) for key, part in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [values(part) for part in batch]
    return batch.tolist() if isinstance(batch, torch.Tensor) and batch.numel() < 100 else _sums(batch)


def _sums(batch):
    if not isinstance(batch, torch.Tensor):
        return batch
    means, last = batch.flatten(1).double().mean(1), batch[:, -1].double().sum()
    return batch.dtype, tuple(batch.shape), means.tolist(), float(last)


@pytest.mark.parametrize("workers", ["process", "thread"])
@pytest.mark.parametrize("form", FORMS)
def test_batches_are_what_default_collate_makes_of_them(form, workers):
    dataset = Images(FORMS[form])
    got = list(DataLoader(dataset, batch_size=10, num_workers=2, workers=workers))
    wanted = [default_collate([dataset[n] for n in range(first, min(first + 10, COUNT))]) for first in (0, 10, 20)]
    assert values(got) == values(wanted)
    assert [type(batch) for batch in got] == [type(batch) for batch in wanted]


def test_samples_that_differ_are_refused_in_the_words_they_always_were():
    def make(index):
        return torch.full((3, SIDE, SIDE + (index == 5)), float(index))

    with pytest.raises(Exception, match=r"dataset index 5") as refusal:
        list(DataLoader(Images(make), batch_size=8, num_workers=1))
    assert "[3, 200, 201]" in str(refusal.value) or "(3, 200, 201)" in str(refusal.value)


def test_a_sample_that_is_left_out_leaves_the_others_as_they_are():
    def make(index):
        if index == 3:
            raise ValueError("rotten")
        return torch.full((LARGE,), float(index)), index

    loader = DataLoader(Images(make), batch_size=8, num_workers=2, on_error="skip")
    for number, (batch, numbers) in enumerate(loader):
        assert batch.double().mean(1).tolist() == numbers.tolist()
        assert [n for n in range(8 * number, 8 * number + 8) if n not in numbers] == ([] if number else [3])


def test_memory_is_used_again_after_batches_that_were_moved_and_after_failures():
    def make(index):
        if index % 8 == 7:
            raise ValueError("rotten")
        return torch.full((1 << 18,), float(index))

    loader = DataLoader(Images(make), batch_size=8, num_workers=1, on_error="skip", persistent_workers=True)

    def held():
        return [sum(map(len, berth.arena._views)) for _, berth in loader._iterator._crew._roster.items()]

    for _ in range(2):
        list(map(len, loader))
    before = held()
    for _ in range(5):
        assert [[int(value) % 8 for value in batch[:, 0]].count(7) for batch in loader] == [0, 0, 0]
    assert held() == before


def mover(least=0):
    return Mover(lambda shape, dtype, count, size: torch.empty(shape, dtype=dtype), least)


def begins(mover, sample, count):
    """As a fetcher asks: the list of samples holds it, and nobody else."""
    samples = [sample()]
    return mover.begin(samples[0], count)


def test_what_the_data_set_keeps_is_not_moved():
    kept, rows = torch.zeros(LARGE), torch.zeros(4, LARGE)
    for form in (lambda part: part, lambda part: (part, 1), lambda part: {"image": part}):
        assert begins(mover(), lambda: form(torch.zeros(LARGE)), 8)  # noqa: B023  # called at once
        assert not begins(mover(), lambda: form(kept), 8)  # noqa: B023
        assert not begins(mover(), lambda: form(rows[1]), 8)  # noqa: B023


def test_what_is_small_is_not_moved():
    assert not begins(mover(), lambda: torch.zeros(100), 100_000)
    assert not begins(mover(), lambda: torch.zeros(LARGE), 2)
    assert not begins(mover(least=1 << 30), lambda: torch.zeros(LARGE), 8)


def test_rows_are_one_tensor_only_when_all_are_there_in_their_order():
    one = mover()
    assert begins(one, lambda: torch.zeros(LARGE), 8)
    rows = [one.move(torch.full((LARGE,), float(number))) for number in range(8)]
    whole = one.whole(rows)
    assert whole is not None
    assert whole[:, 0].tolist() == list(range(8))
    assert one.whole(rows[::-1]) is None
    assert one.whole(rows[:7]) is None
    assert one.whole([*rows[:7], rows[0]]) is None
    one.forget()
    assert one.whole(rows) is None


def test_a_row_has_the_numbers_of_its_sample_however_they_lie_in_memory():
    one, square = mover(), torch.arange(float(LARGE)).view(256, 256)
    assert begins(one, lambda: torch.zeros(256, 256), 8)
    assert torch.equal(one.move(square.t()), square.t())
    assert torch.equal(one.move(square), square)
    one = mover()
    assert begins(one, lambda: torch.zeros(LARGE, dtype=torch.complex64), 8)
    conjugate = torch.full((LARGE,), 1 + 2j).conj()
    assert torch.equal(one.move(conjugate), torch.full((LARGE,), 1 - 2j))


def test_one_that_does_not_fit_ends_it():
    one = mover()
    assert begins(one, lambda: torch.zeros(LARGE), 8)
    odd = torch.zeros(LARGE + 1)
    rows = [one.move(torch.zeros(LARGE)), one.move(odd), one.move(torch.ones(LARGE))]
    assert rows[1] is odd
    assert one.whole(rows) is None
    assert [float(row.sum()) for row in rows] == [0, 0, LARGE]


@pytest.mark.parametrize(
    "odd",
    [
        lambda: torch.zeros(LARGE, requires_grad=True),
        lambda: torch.zeros(LARGE).to_sparse(),
        lambda: torch.zeros(LARGE, device="meta"),
        lambda: torch.zeros(LARGE, dtype=torch.int32),
        lambda: numpy.zeros(LARGE, numpy.float32),
    ],
    ids=["with a gradient", "sparse", "elsewhere", "of another type", "an array"],
)
def test_what_torch_has_something_to_say_about_is_left_to_it(odd):
    one, part = mover(), odd()
    assert begins(one, lambda: torch.zeros(LARGE), 8)
    assert one.move(part) is part
    assert one.move(after := torch.ones(LARGE)) is after  # of a column that is not whole, none is moved
