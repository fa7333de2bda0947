"""``shard=``: each item of a stream once, over workers and ranks, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from small_datasets import Squares
from torch.utils.data import IterableDataset

from holdfast import DataLoader
from holdfast._worker.sharding import Ranks


class Lines(IterableDataset):
    def __init__(self, count: int = 50) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        yield from range(self.count)


class Mortal(Lines):
    """Whoever comes to one of ``places`` first dies there, once for each place and worker."""

    def __init__(self, folder: Path, places: tuple[int, ...]) -> None:
        super().__init__()
        self.folder, self.places = folder, places

    def __iter__(self) -> Iterator[int]:
        for item in range(self.count):
            mark = self.folder / f"{item}-{torch.utils.data.get_worker_info().id}"
            if item in self.places and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield item


class Bumpy(Lines):
    """An iterator that raises at one item and goes on."""

    def __iter__(self) -> Iterator[int]:
        return map(self._load, range(self.count))

    def _load(self, item: int) -> int:
        if item == 5:
            raise ValueError("item 5")
        return item


class BumpyGenerator(Bumpy):
    def __iter__(self) -> Iterator[int]:
        for item in range(self.count):
            yield self._load(item)


def items(loader: Any) -> list[int]:
    return [item for batch in loader for item in batch.tolist()]


@pytest.mark.parametrize("shard", ["auto", "worker"])
@pytest.mark.parametrize("workers", ["process", "thread"])
@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_each_item_comes_once(shard, workers, number):
    loader = DataLoader(Lines(), batch_size=4, num_workers=number, workers=workers, shard=shard)
    for _ in range(2):
        assert sorted(items(loader)) == list(range(50))


def test_a_worker_takes_every_other_item():
    batches = [batch.tolist() for batch in DataLoader(Lines(16), batch_size=4, num_workers=2, shard="auto")]
    assert batches == [[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15]]


def test_single_items_are_divided_as_well():
    assert list(DataLoader(Lines(9), batch_size=None, num_workers=2, shard="auto")) == list(range(9))


@pytest.mark.parametrize("number", [1, 2])
def test_a_life_after_a_kill_goes_on_where_its_share_was(tmp_path, number):
    dataset = Mortal(tmp_path, (13, 37))
    loader = DataLoader(dataset, batch_size=4, num_workers=number, shard="auto")
    assert sorted(items(loader)) == list(range(50))
    assert loader.restarts == 2 * number


@pytest.mark.parametrize("number", [0, 2, 3])
def test_an_item_that_raises_is_told_of_by_the_one_whose_it_is(number):
    loader = DataLoader(Bumpy(20), num_workers=number, shard="auto", on_error="skip")
    assert sorted(items(loader)) == [item for item in range(20) if item != 5]
    assert [str(fault.error) for fault in loader.faults] == ["item 5"]


@pytest.mark.parametrize("number", [0, 2])
def test_an_item_that_raises_is_raised_once(number):
    iterator = iter(DataLoader(Bumpy(20), num_workers=number, shard="auto"))
    got, errors = [], 0
    while True:
        try:
            got.append(int(next(iterator)))
        except StopIteration:
            break
        except ValueError:
            errors += 1
    assert (sorted(got), errors) == ([item for item in range(20) if item != 5], 1)


def test_a_generator_ends_for_all_and_all_say_so():
    """It has no more items for anybody; nobody may pass over that."""
    iterator = iter(DataLoader(BumpyGenerator(20), num_workers=2, shard="auto"))
    got, errors = [], 0
    while True:
        try:
            got.append(int(next(iterator)))
        except StopIteration:
            break
        except ValueError:
            errors += 1
    assert (sorted(got), errors) == ([0, 1, 2, 3, 4], 2)


@pytest.mark.parametrize("first", range(6))
def test_a_share_is_a_slice(first):
    share = Ranks(rank=first // 3, world=2).share(iter(range(20)), first % 3, 3)
    assert list(share) == list(range(20))[first::6]
    assert list(share) == []


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="shard should be one of"):
        DataLoader(Lines(), shard="rank")
    with pytest.raises(ValueError, match="for iterable data sets"):
        DataLoader(Squares(), shard="auto")


RANK = """
    import sys, warnings
    import torch.distributed
    from torch.utils.data import IterableDataset
    from holdfast import DataLoader
    warnings.simplefilter("error")

    class Lines(IterableDataset):
        def __iter__(self):
            yield from range(50)

    rank, store = int(sys.argv[1]), sys.argv[2]
    torch.distributed.init_process_group("gloo", f"file://{store}", rank=rank, world_size=2)
    for shard in ("auto", "worker"):
        for workers in (0, 1, 2, 4):
            warnings.filterwarnings("ignore", message="This DataLoader will create")
            loader = DataLoader(Lines(), batch_size=4, num_workers=workers, shard=shard)
            print(shard, workers, *[item for batch in loader for item in batch.tolist()])
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_two_ranks_share_a_stream(tmp_path):
    program = tmp_path / "rank.py"
    program.write_text(textwrap.dedent(RANK))
    command = [sys.executable, program]
    ranks = [
        subprocess.Popen([*command, str(rank), tmp_path / "store"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    told = [rank.communicate(timeout=100) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], told
    first, second = ([line.split() for line in out.decode().splitlines()] for out, _ in told)
    assert len(first) == len(second) == 8
    for (shard, workers, *one), (_, _, *other) in zip(first, second):
        got = sorted(map(int, one + other))
        assert got == sorted([*range(50)] * (1 if shard == "auto" else 2)), f"{shard} with {workers} workers"
