"""Workers that are threads of the trainer."""

from __future__ import annotations

import random
import threading

import numpy
import pytest
import torch
from samples import SAMPLES, DrawsItsOwn, Plain, Stream
from torch.utils.data import default_collate
from torch.utils.data._utils.collate import default_collate_fn_map

import holdfast
from holdfast import DataLoader, LoaderTimeout, WorkerDied
from holdfast.testing import Faulty, QuitsAt, RaisesAt


def threads(dataset, **options) -> DataLoader:
    options = {"batch_size": 4, "num_workers": 2, "timeout": 30, **options}
    return DataLoader(dataset, workers="thread", generator=torch.Generator().manual_seed(7), **options)


@pytest.mark.parametrize("workers", [2, 3])
def test_a_workers_own_generators_give_the_same_stream_for_any_number_of_threads(workers):
    alone = list(threads(DrawsItsOwn(), num_workers=1))
    assert all(map(torch.equal, threads(DrawsItsOwn(), num_workers=workers), alone))
    assert len({float(batch[0, 1]) for batch in alone}) == len(alone)


def test_the_trainers_globals_are_left_alone():
    def globals_now():
        return (
            torch.get_rng_state().tolist(),
            str(numpy.random.get_state()),
            random.getstate(),
            torch.get_num_threads(),
            dict(default_collate_fn_map),
            torch.utils.data.get_worker_info(),
            holdfast.get_worker_info(),
        )

    before = globals_now()
    list(threads(DrawsItsOwn()))
    assert globals_now() == before


def test_a_thread_knows_who_it_is_and_has_the_trainers_dataset():
    seen = {}

    def init(seat):
        seen[seat] = holdfast.get_worker_info(), threading.current_thread()

    dataset = Plain()
    list(threads(dataset, worker_init_fn=init))
    assert sorted(seen) == [0, 1]
    for seat, (info, thread) in seen.items():
        assert (info.id, info.num_workers, info.worker_method) == (seat, 2, "thread")
        assert info.dataset is dataset
        assert thread is not threading.main_thread()


def test_batches_are_handed_over_and_not_copied():
    made = []

    def collate(samples):
        made.append((default_collate(samples), iter(samples)))  # an iterator of a list would not come back the same
        return made[-1]

    batches = list(threads(Plain(), num_workers=1, collate_fn=collate))
    assert all(got is given for got, given in zip(batches, made, strict=True))


def test_an_exception_arrives_as_itself_with_a_note():
    error = KeyError("rotten")
    batches = iter(threads(Faulty(Plain(), RaisesAt(5, error))))
    next(batches)
    with pytest.raises(KeyError) as raised:
        next(batches)
    assert raised.value is error
    assert "sample 5 of batch 1" in error.__notes__[0]
    error.__traceback__ = None  # it holds the frames of this test


def test_an_init_function_that_fails_is_told_at_once():
    def init(seat):
        raise ValueError("no disk")

    with pytest.raises(ValueError, match="no disk"):
        list(threads(Plain(), worker_init_fn=init))


def test_a_thread_that_quits_is_replaced():
    loader = threads(Faulty(Plain(), QuitsAt(5, 3, once=True)))
    assert [int(index) for batch in loader for index in batch[:, 0]] == list(range(SAMPLES))
    assert loader.restarts == 1


def test_a_sample_that_always_ends_its_thread_is_named():
    batches = iter(threads(Faulty(Plain(), QuitsAt(1, 3))))
    with pytest.raises(WorkerDied) as died:
        next(batches)
    assert (died.value.sample, died.value.verdict.status) == (1, 3)
    assert "SystemExit" in died.value.verdict.stack
    assert next(batches)[0, 0] == 4


def test_an_iterable_dataset_is_iterated_by_each_thread():
    rows = torch.cat(list(threads(Stream())))
    assert sorted(rows[:, 0].tolist()) == list(range(SAMPLES))


def test_persistent_threads_serve_the_next_epoch():
    loader = threads(DrawsItsOwn(), persistent_workers=True)
    first = iter(loader)
    alive = first._workers
    list(first)
    assert len(list(loader)) == SAMPLES // 4
    assert loader._iterator._workers == alive
    loader._iterator = None


class Slow(Plain):
    def __init__(self):
        self.begun, self.go_on, self.loaded = threading.Event(), threading.Event(), []

    def __getitem__(self, index):
        self.loaded.append(index)
        self.begun.set()
        self.go_on.wait()
        return index


def test_closing_does_not_wait_for_a_slow_sample_and_no_other_is_loaded():
    dataset = Slow()
    batches = iter(threads(dataset, num_workers=1, timeout=0.1))
    worker = batches._workers[0]
    while not dataset.begun.is_set():
        with pytest.raises(LoaderTimeout):
            next(batches)
    batches.close()
    assert worker._thread.is_alive()
    dataset.go_on.set()
    worker._thread.join(10)
    assert not worker._thread.is_alive()
    assert dataset.loaded == [0]
