"""Every way to start workers gives the same stream and survives the same deaths."""

from __future__ import annotations

import pytest
import torch
from samples import SAMPLES, Augmented, Plain, Stream

from holdfast import DataLoader, WorkerDied
from holdfast.testing import DiesAt, Faulty

STARTS = ("zygote", "standby", "fork", "spawn", "forkserver")


def stream(dataset, **how) -> list[torch.Tensor]:
    options = {"batch_size": 4, "num_workers": 2, "timeout": 60, **how}
    return list(DataLoader(dataset, generator=torch.Generator().manual_seed(7), **options))


def same(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return len(left) == len(right) and all(map(torch.equal, left, right))


def serial(dataset, **how) -> list[torch.Tensor]:
    return stream(dataset, num_workers=0, timeout=0, **how)


@pytest.mark.parametrize("start", STARTS)
def test_random_augmentation_is_the_same_in_every_kind_of_worker_though_one_is_killed(start):
    fault = DiesAt(13, once=True)
    assert same(stream(Faulty(Augmented(), fault), start=start, shuffle=True), serial(Augmented(), shuffle=True))
    assert fault.once.struck()


@pytest.mark.parametrize(
    "start", [pytest.param(start, marks=[pytest.mark.slow] * (start in ("spawn", "standby"))) for start in STARTS]
)
def test_a_sample_that_always_kills_is_named_and_the_others_arrive(start):
    batches = iter(DataLoader(Faulty(Plain(), DiesAt(5)), batch_size=4, num_workers=1, start=start, timeout=60))
    arrived, died = [], []
    for _ in range(SAMPLES // 4):
        try:
            arrived += next(batches)[:, 0].tolist()
        except WorkerDied as error:
            died.append((error.sample, error.verdict.signal))
    assert died == [(5, "SIGKILL")]
    assert arrived == [index for index in range(SAMPLES) if index not in range(4, 8)]
    assert next(batches, None) is None


@pytest.mark.parametrize("start", ["zygote", "fork"])
def test_an_iterable_dataset_is_divided_among_the_workers(start):
    rows = torch.cat(stream(Stream(), start=start))
    assert sorted(rows[:, 0].tolist()) == list(range(SAMPLES))


def test_threads_give_the_same_stream_where_nothing_is_drawn_from_global_generators():
    assert same(stream(Plain(), workers="thread", shuffle=True), serial(Plain(), shuffle=True))
