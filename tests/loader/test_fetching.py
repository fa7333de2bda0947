"""What a worker notes of the samples that it fetches, seen from inside a data set."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from holdfast._worker import fetch
from holdfast._worker.fetch import LONGEST, SHORT, Unnoted, fetcher
from holdfast._worker.job import Job
from holdfast._worker.moving import LARGE, Mover
from holdfast.errors import StopInItem

QUICK, SLOW = SHORT / 1e6, SHORT * 2


class Clocked:
    """Each sample takes the time that ``takes`` says, by a clock of its own, and looks at the notes as it begins."""

    def __init__(self, takes: Callable[[int], float], monkeypatch: pytest.MonkeyPatch) -> None:
        self.notes, self.now, self._takes = Unnoted(), 100.0, takes
        monkeypatch.setattr(fetch, "monotonic", lambda: self.now)
        self.late: list[float] = []  # by how much the time that was noted was past, for each sample
        self.places: list[int] = []

    def __getitem__(self, index: int) -> torch.Tensor | int:
        self.places.append(self.notes.place[()])
        self.late.append(self.now - self.notes.since[()])
        self.now += self._takes(index)
        return index

    def load(self, *batches: object, mover: Mover | None = None) -> list[list[object]]:
        load = fetcher(Job(self, None, None, False, True, False, 1, None), self.notes, mover)  # type: ignore[arg-type]
        loaded = []
        for batch in batches:
            self.notes.since[()] = self.now
            loaded.append(load(batch))
        return loaded


def test_every_sample_notes_its_place(monkeypatch):
    dataset = Clocked(lambda index: QUICK, monkeypatch)
    assert dataset.load([7, 8, 9], (4, 5), range(3), iter([1, 2]), []) == [[7, 8, 9], [4, 5], [0, 1, 2], [1, 2], []]
    assert dataset.places == [0, 1, 2, 0, 1, 0, 1, 2, 0, 1]


def test_slow_samples_note_their_time(monkeypatch):
    dataset = Clocked(lambda index: SLOW, monkeypatch)
    dataset.load(range(20), range(20))
    assert dataset.late == [0.0] * 40


def test_quick_samples_note_the_time_of_their_run(monkeypatch):
    dataset = Clocked(lambda index: QUICK, monkeypatch)
    dataset.load(range(3 * LONGEST))
    assert sum(late == 0.0 for late in dataset.late) < 20
    assert max(dataset.late) < LONGEST * QUICK


def test_samples_that_turn_slow_note_their_time_after_one_run(monkeypatch):
    dataset = Clocked(lambda index: QUICK if index < 100 else SLOW, monkeypatch)
    dataset.load(range(100), range(100, 400))
    assert dataset.late[-100:] == [0.0] * 100


def test_a_run_goes_on_through_batches_and_ends(monkeypatch):
    batch, turns = 64, 4 * LONGEST
    dataset = Clocked(lambda index: QUICK if index < turns else SLOW, monkeypatch)
    dataset.load(*(range(at, at + batch) for at in range(0, turns + 2 * LONGEST, batch)))
    quick, slow = dataset.late[:turns], dataset.late[turns:]
    assert sum(late == 0.0 for late in quick) < turns / batch + 20  # each batch notes when it was begun
    assert slow[LONGEST + batch :] == [0.0] * (LONGEST - batch)


def test_moved_samples_note_place_and_time(monkeypatch):
    class Large(Clocked):
        def __getitem__(self, index: int) -> torch.Tensor:
            super().__getitem__(index)
            return torch.full((LARGE,), index)

    dataset = Large(lambda index: SLOW, monkeypatch)
    mover = Mover(lambda shape, dtype, count, size: torch.empty(shape, dtype=dtype), 0)
    (samples,) = dataset.load(range(16), mover=mover)
    assert [int(sample[0]) for sample in samples] == list(range(16))
    assert mover.whole(samples) is not None
    assert dataset.places == list(range(16))
    assert dataset.late == [0.0] * 16


def test_stop_iteration_names_its_sample(monkeypatch):
    def stops(index: int) -> float:
        if index == 6:
            raise StopIteration
        return QUICK

    with pytest.raises(StopInItem, match="6"):
        Clocked(stops, monkeypatch).load([3, 4, 5, 6, 7])
