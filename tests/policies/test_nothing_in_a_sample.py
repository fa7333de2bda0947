"""``except: return None, None``, the commonest bad sample of all: one fault, whatever the number of Nones in it."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import IterableDataset

from holdfast import DataLoader, NoneSample


def sample(number: int) -> tuple:
    return (None, None) if number == 2 else (torch.ones(2), number)


class Pairs:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return sample(index)


class Items:
    """No generator: it may go on."""

    def __init__(self) -> None:
        self.numbers = iter(range(8))

    def __iter__(self):
        return self

    def __next__(self):
        return sample(next(self.numbers))


class Stream(IterableDataset):
    def __iter__(self):
        return Items()


@pytest.mark.parametrize("workers", [0, 1])
def test_it_is_skipped_once(workers):
    loader = DataLoader(Pairs(), batch_size=4, num_workers=workers, on_error="skip")
    first, second = (batch[1].tolist() for batch in loader)
    (fault,) = loader.faults
    assert (fault.index, fault.action, type(fault.error)) == (2, "skipped", NoneSample)
    assert (first, second) == ([0, 1, fault.instead, 3], [4, 5, 6, 7])


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stream_loses_no_other_item_with_it(workers):
    loader = DataLoader(Stream(), batch_size=4, num_workers=workers, on_error="skip")
    assert [batch[1].tolist() for batch in loader] == [[0, 1, 3, 4], [5, 6, 7]]
    assert [fault.item for fault in loader.faults] == [2]
