"""What the trainer sets on its data set reaches the workers that have a copy of it: F41."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, IterableDataset, Subset

from holdfast import DataLoader
from holdfast._worker.attributes import UNCHANGED, Attributes


class Told(Dataset):
    """Every sample is what the worker's copy knows."""

    epoch = 0

    def __init__(self) -> None:
        self.scale: Any = 1
        self.order = [0]

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        self.order = [epoch]  # not plain, and made anew from what is

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return os.getpid(), self.epoch, self.scale, self.order[0]


def told(loader: Any, *, same: list[int] | None = None) -> Any:
    """What all samples of an epoch say, and that they come from the same workers as before."""
    samples = [sample for batch in loader for sample in batch]
    pids = sorted({sample[0] for sample in samples})
    assert same is None or pids == same
    (what,) = {sample[1:] for sample in samples}
    return pids, what


def loader_of(dataset: Any, **options: Any) -> Any:
    return DataLoader(
        dataset, batch_size=2, collate_fn=list, **({"num_workers": 1, "persistent_workers": True} | options)
    )


STARTS = ["zygote", "fork", "spawn"]


@pytest.mark.parametrize("start", STARTS)
def test_the_epoch_and_plain_values_reach_persistent_workers(start):
    dataset = Told()
    loader = loader_of(dataset, start=start)
    pids, what = told(loader)
    assert what == (0, 1, 0)
    dataset.set_epoch(3)
    assert told(loader, same=pids)[1] == (3, 1, 3)
    dataset.scale = (0.5, "x", None)
    assert told(loader, same=pids)[1] == (3, (0.5, "x", None), 3)
    dataset.scale = 1  # as it was in the beginning
    dataset.epoch = 4
    assert told(loader, same=pids)[1] == (4, 1, 4)


@pytest.mark.parametrize("options", [{"num_workers": 0, "persistent_workers": False}, {"workers": "thread"}], ids=str)
def test_it_is_the_same_without_processes(options):
    dataset = Told()
    loader = loader_of(dataset, **options)
    told(loader)
    dataset.set_epoch(2)
    loader.broadcast(scale=str)
    assert told(loader)[1] == (2, str, 2)


@pytest.mark.parametrize("wrap", [lambda one: Subset(one, range(4)), lambda one: ConcatDataset([one])])
def test_data_sets_inside_others_are_told(wrap):
    dataset = Told()
    wrapped = wrap(wrap(dataset))
    loader = loader_of(wrapped)
    pids, _ = told(loader)
    dataset.set_epoch(7)
    assert told(loader, same=pids)[1] == (7, 1, 7)
    loader.broadcast(scale=2)
    assert told(loader, same=pids)[1] == (7, 2, 7)
    assert dataset.scale == 2
    assert "scale" not in vars(wrapped)


class Weighted(Told):
    def __init__(self, weights: Any) -> None:
        super().__init__()
        self.weights = weights

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return os.getpid(), float(self.weights.sum())


def test_broadcast_carries_what_is_not_plain_from_the_next_epoch_on():
    dataset = Weighted(torch.zeros(1000))
    loader = loader_of(dataset)
    iterator = iter(loader)
    (pid, first), *_ = next(iterator)
    loader.broadcast(weights=torch.ones(1000), epoch=5)
    assert (first, {sample[1] for batch in iterator for sample in batch}) == (0.0, {0.0})
    assert told(loader, same=[pid])[1] == (1000.0,)
    assert (float(dataset.weights.sum()), dataset.epoch) == (1000.0, 5)
    assert told(loader, same=[pid])[1] == (1000.0,)


def test_broadcast_needs_no_worker_to_be_there():
    dataset = Weighted(torch.zeros(10))
    loader = loader_of(dataset)
    loader.broadcast(weights=torch.ones(10))
    assert told(loader)[1] == (10.0,)


def test_broadcast_refuses_what_nobody_has_and_then_sets_nothing():
    dataset = Told()
    loader = loader_of(dataset)
    with pytest.raises(AttributeError, match=r"Told.*'scales'"):
        loader.broadcast(scale=2, scales=3)
    assert dataset.scale == 1


class DiesOnce(Weighted):
    def __init__(self, mark: Path) -> None:
        super().__init__(torch.zeros(1))
        self.mark = mark

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        if self.scale == 2 and index == 2 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return 0, self.scale, self.epoch, float(self.weights.sum())


def test_a_new_life_is_told_of_all_that_was_changed_before(tmp_path):
    dataset = DiesOnce(tmp_path / "mark")
    loader = loader_of(dataset)
    assert told(loader)[1] == (1, 0, 0.0)
    dataset.set_epoch(1)
    loader.broadcast(weights=torch.ones(1))
    assert told(loader)[1] == (1, 1, 1.0)
    dataset.scale = 2
    assert told(loader)[1] == (2, 1, 1.0)
    assert loader.restarts == 1


class Lines(IterableDataset):
    epoch = 0

    def __iter__(self) -> Any:
        return iter([100 * self.epoch + i for i in range(3)])


def test_a_stream_begins_with_its_epoch():
    dataset = Lines()
    loader = DataLoader(dataset, num_workers=1, persistent_workers=True)
    for epoch in range(3):
        dataset.epoch = epoch
        assert [int(item) for item in loader] == [100 * epoch, 100 * epoch + 1, 100 * epoch + 2]


class Opened(Told):
    """Private names are the object's own: a worker has not opened what the trainer opened."""

    _opened = False

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        if not self._opened:
            self.file, self._opened = [1], True
        return 0, self.file[0]


def test_private_bookkeeping_stays_in_its_process():
    dataset = Opened()
    attributes = Attributes(dataset)
    dataset[0]
    assert attributes.changes() == UNCHANGED


class Slotted:
    __slots__ = ("epoch",)

    def __init__(self) -> None:
        self.epoch = 0

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> tuple[int, int]:
        return os.getpid(), self.epoch


@dataclass(frozen=True)
class Frozen:
    epoch: int = 0
    __len__ = Slotted.__len__
    __getitem__ = Slotted.__getitem__  # type: ignore[assignment]


class TwoArguments(Slotted):
    def set_epoch(self, epoch: int, seed: int) -> None:
        raise AssertionError("nobody knows the seed")


@pytest.mark.parametrize("kind", [Slotted, Frozen, TwoArguments])
def test_odd_data_sets_are_told_too(kind):
    dataset = kind()
    loader = loader_of(dataset)
    pids, _ = told(loader)
    object.__setattr__(dataset, "epoch", 9)
    assert told(loader, same=pids)[1] == (9,)


def test_nothing_is_sent_when_nothing_changed():
    dataset = Told()
    attributes = Attributes(dataset)
    assert attributes.changes() is not None
    assert attributes.changes() == UNCHANGED
    dataset.scale = 2
    assert attributes.changes().new is not None
    later = attributes.changes()
    assert later.new is None
    assert later.all is not None
