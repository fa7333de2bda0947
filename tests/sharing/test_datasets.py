"""A loader over ``share(dataset)``: one copy of its lists for all workers, and errors that name paths as before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from torch.utils.data import Dataset, Subset

from holdfast import DataLoader, share
from holdfast._worker.describe import describe
from holdfast.audit.lists import large_containers


class Images(Dataset):
    def __init__(self, count: int) -> None:
        self.paths = [f"/data/imagenet/train/n{i % 1000:08d}/n{i % 1000:08d}_{i}.JPEG" for i in range(count)]

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int):
        """The first 20 only say where they are loaded; the others read all paths."""
        return os.getpid(), sum(map(len, self.paths)) if index >= 20 else 0


class Files(Dataset):
    def __init__(self, **members) -> None:
        vars(self).update(members)

    def __len__(self) -> int:
        return 2000

    def __getitem__(self, index: int):
        raise OSError("truncated")


def proportional(pid: int) -> int:
    """Bytes of memory of a process, each page divided by the number of those who have it mapped."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) << 10


def costs_of(count: int) -> tuple[int, int]:
    """One copy, and what the trainer and its workers have more of when all workers have read all paths."""
    plain = Images(count)
    total = sum(map(len, plain.paths))
    dataset = share(plain)
    del plain
    batches = iter(DataLoader(dataset, batch_size=None, num_workers=2, persistent_workers=True, timeout=60))
    pids = {os.getpid(), *(int(next(batches)[0]) for _ in range(20))}
    assert len(pids) == 3
    before = sum(map(proportional, pids))
    answers = list(batches)
    assert {int(read) for _, read in answers} == {total}
    assert {int(pid) for pid, _ in answers} == pids - {os.getpid()}
    return dataset.paths._memory.size, sum(map(proportional, pids)) - before


def test_workers_have_one_copy_of_a_long_list_together():
    size, grown = costs_of(100_000)
    assert grown <= 1.1 * size + (2 << 20)  # what else workers come to touch, which is little beside the real lists


@pytest.mark.slow
def test_three_million_paths_are_one_copy_for_two_workers():
    size, grown = costs_of(3_000_000)
    assert size > 150 << 20
    assert grown <= 1.1 * size


LISTS = {
    "a list": lambda names: {"paths": names},
    "pairs": lambda names: {"samples": [(name, 1) for name in names]},
    "a dict": lambda names: {"files": dict(enumerate(names))},
    "an unusual name": lambda names: {"where": names},
}


@pytest.mark.parametrize("members", LISTS.values(), ids=LISTS)
def test_a_sample_is_named_by_its_path(members):
    dataset = share(Files(**members([f"/data/{i}.jpg" for i in range(2000)])))
    assert describe(dataset, 1234) == "/data/1234.jpg"
    assert describe(share(Subset(dataset, list(range(1999, -1, -1)))), 0) == "/data/1999.jpg"


def test_an_error_of_a_worker_names_the_path():
    dataset = share(Files(paths=[f"/data/{i}.jpg" for i in range(2000)]))
    with pytest.raises(OSError, match="truncated") as caught:
        next(iter(DataLoader(dataset, num_workers=1, timeout=60)))
    assert "/data/0.jpg" in "".join(caught.value.__notes__)


def test_the_advice_for_long_lists_is_to_share_them_and_then_they_are_no_more_noted():
    dataset = Files(paths=[f"/data/train/{i:07d}.jpg" for i in range(300_000)])
    (finding,) = large_containers(dataset)
    assert finding.fix == "dataset = holdfast.share(dataset)  # one copy for all"
    assert not large_containers(share(dataset))
