"""The checkpoints that people make: torch.save, and torch.distributed.checkpoint (DCP), alone and on ranks."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.stateful import Stateful
from torch.utils.data import Dataset, IterableDataset
from torchruns import ranks, run

from holdfast import DataLoader, DistributedSampler

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled:UserWarning")
HERE, GIVEN, EPOCHS = 20240301, 3, 3


class Pictures(Dataset):
    def __len__(self) -> int:
        return 30

    def __getitem__(self, index: int) -> tuple[int, torch.Tensor, float]:
        return index, torch.rand(2), random.random()


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[Any]:
        return ((index, torch.rand(2), random.random()) for index in range(30))


class Keeper(IterableDataset):
    def __init__(self) -> None:
        self.given = 0

    def __iter__(self) -> Iterator[Any]:
        while self.given < 30:
            self.given += 1
            yield self.given - 1, torch.rand(2), random.random()
        self.given = 0

    def state_dict(self) -> dict[str, Any]:
        return {"given": self.given}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.given = state["given"]


def shuffled(workers: int = 0) -> DataLoader:
    return DataLoader(Pictures(), batch_size=4, shuffle=True, num_workers=workers)


def of_ranks(workers: int = 0) -> DataLoader:
    sampler = DistributedSampler(Pictures(), num_replicas=2, rank=1, tail="exact")
    return DataLoader(Pictures(), batch_size=3, sampler=sampler, num_workers=workers)


def stream(workers: int = 0) -> DataLoader:
    return DataLoader(Stream(), batch_size=4, num_workers=workers)


def keeper(workers: int = 0) -> DataLoader:
    return DataLoader(Keeper(), batch_size=4, num_workers=workers)


MAKERS: list[Callable[..., DataLoader]] = [shuffled, of_ranks, stream, keeper]
MAP_STYLE = [shuffled, of_ranks]
STREAMS = [stream, keeper]
all_kinds = pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)


class Place:
    """A loader for DCP, as one string: DCP reads into the structure that it finds, and a state's grows with the run."""

    def __init__(self, loader: DataLoader) -> None:
        self.loader = loader

    def state_dict(self) -> dict[str, Any]:
        return {"state": json.dumps(self.loader.state_dict())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.loader.load_state_dict(json.loads(state["state"]))


def stopped(make: Callable[..., DataLoader], workers: int = 0) -> tuple[DataLoader, Iterator[Any]]:
    """In the middle of an epoch. The iterator has the rest."""
    torch.manual_seed(HERE)
    loader = make(workers)
    batches = iter(loader)
    list(islice(batches, GIVEN))
    return loader, batches


def plain(batches: Any) -> list[Any]:
    return [[part.tolist() for part in batch] for batch in batches]


def to_the_end(loader: DataLoader, batches: Any = None) -> list[Any]:
    """The rest of this epoch, and the next ones."""
    rest = plain(loader if batches is None else batches)
    return [rest, *(plain(loader) for _ in range(loader.state_dict()["epoch"], EPOCHS))]


def elsewhere(make: Callable[..., DataLoader], workers: int = 0) -> DataLoader:
    """A loader in another run, which was seeded with something else."""
    torch.manual_seed(HERE + 1)
    torch.rand(5)
    return make(workers)


@all_kinds
def test_torch_save(make, tmp_path):
    """With the model and the optimizer in one file, read with weights_only=True."""
    loader, batches = stopped(make)
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
    torch.save(checkpoint, tmp_path / "last.pt")
    rest = to_the_end(loader, batches)
    other = elsewhere(make)
    other.load_state_dict(torch.load(tmp_path / "last.pt", weights_only=True)["loader"])
    assert to_the_end(other) == rest


@all_kinds
def test_dcp_with_the_state_as_a_string(make, tmp_path):
    """Whatever is in it, and with another number of workers where that may be."""
    loader, batches = stopped(make)
    dcp.save(
        {"model": torch.nn.Linear(2, 2).state_dict(), "loader": json.dumps(loader.state_dict())}, checkpoint_id=tmp_path
    )
    found = {"model": torch.nn.Linear(2, 2).state_dict(), "loader": ""}
    dcp.load(found, checkpoint_id=tmp_path)
    rest = to_the_end(loader, batches)
    other = elsewhere(make, workers=2 if make in MAP_STYLE else 0)
    other.load_state_dict(json.loads(found["loader"]))
    assert to_the_end(other) == rest


@all_kinds
def test_dcp_with_an_object_that_keeps_the_state_as_a_string(make, tmp_path):
    loader, batches = stopped(make, workers=2 if make in MAP_STYLE else 0)
    dcp.save({"loader": Place(loader)}, checkpoint_id=tmp_path)
    rest = to_the_end(loader, batches)
    other = elsewhere(make)
    dcp.load({"loader": Place(other)}, checkpoint_id=tmp_path)
    assert to_the_end(other) == rest


def test_a_loader_is_what_dcp_calls_stateful():
    assert isinstance(shuffled(), Stateful)


@pytest.mark.parametrize("make", MAKERS[:3], ids=lambda make: make.__name__)
def test_dcp_with_the_loader_itself_between_epochs(make, tmp_path):
    torch.manual_seed(HERE)
    loader = make()
    plain(loader)
    dcp.save({"loader": loader}, checkpoint_id=tmp_path)
    state, rest = loader.state_dict(), to_the_end(loader)
    other = elsewhere(make)
    dcp.load({"loader": other}, checkpoint_id=tmp_path)
    assert other.state_dict() == state
    assert to_the_end(other) == rest


@pytest.mark.parametrize("make", MAP_STYLE, ids=lambda make: make.__name__)
def test_dcp_with_the_loader_itself_in_the_middle_of_an_epoch(make, tmp_path):
    loader, batches = stopped(make)
    dcp.save({"loader": loader}, checkpoint_id=tmp_path)
    rest = to_the_end(loader, batches)
    other = elsewhere(make)
    dcp.load({"loader": other}, checkpoint_id=tmp_path)
    assert to_the_end(other) == rest


@pytest.mark.parametrize("make", STREAMS, ids=lambda make: make.__name__)
def test_dcp_with_a_stream_itself_says_that_it_cannot(make, tmp_path):
    """It reads into the structure of the un-begun loader, and the state of a stream has another: give it as text."""
    loader, _ = stopped(make)
    dcp.save({"loader": loader}, checkpoint_id=tmp_path)
    with pytest.raises((ValueError, CheckpointException), match=r"not whole|Missing key"):
        dcp.load({"loader": elsewhere(make)}, checkpoint_id=tmp_path)


@pytest.mark.parametrize("make", MAP_STYLE, ids=lambda make: make.__name__)
@pytest.mark.parametrize(("saved", "here"), [(1, 0), (0, 1), (1, 2)])
def test_dcp_with_the_loader_itself_and_another_number_of_workers(make, saved, here, tmp_path):
    dcp.save({"loader": make(saved)}, checkpoint_id=tmp_path)
    dcp.load({"loader": make(here)}, checkpoint_id=tmp_path)


@all_kinds
def test_a_state_that_has_lost_a_part_is_an_error(make):
    """As DCP loses it, and anybody who picks keys."""
    state = stopped(make)[0].state_dict()
    part = state["sampler"] if make in MAP_STYLE else state
    del part["samples" if make in MAP_STYLE else "streams"]
    with pytest.raises(ValueError, match="not whole"):
        elsewhere(make).load_state_dict(state)


@pytest.mark.slow
def test_dcp_on_ranks(tmp_path):
    """Two ranks save together, and go on together; and so does one alone."""
    run(*ranks(2, __file__, tmp_path))
    told = [json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in range(2)]
    assert [one["resumed"] for one in told] == [one["rest"] for one in told]
    alone = dealt_to(2, 1)
    dcp.load({"loader": Place(alone)}, checkpoint_id=tmp_path / "checkpoint")
    assert plain(alone) == told[1]["rest"]
    alone = dealt_to(1, 0)
    dcp.load({"loader": Place(alone)}, checkpoint_id=tmp_path / "checkpoint")
    given = [*(batch[0] for one in told for batch in one["given"]), *(batch[0] for batch in plain(alone))]
    assert sorted(chain.from_iterable(given)) == list(range(30))


def dealt_to(world: int, rank: int) -> DataLoader:
    sampler = DistributedSampler(Pictures(), world, rank, tail="exact")
    return DataLoader(Pictures(), batch_size=4, sampler=sampler)


def on_a_rank(folder: Path) -> None:
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    loader, other = dealt_to(2, rank), dealt_to(2, rank)
    batches = iter(loader)
    given = plain(islice(batches, 2))
    dcp.save({"loader": Place(loader)}, checkpoint_id=folder / "checkpoint")
    dcp.load({"loader": Place(other)}, checkpoint_id=folder / "checkpoint")
    told = {"given": given, "rest": plain(batches), "resumed": plain(other)}
    (folder / f"rank-{rank}.json").write_text(json.dumps(told))
    torch.distributed.destroy_process_group()


# -- the trainer's own random numbers --------------------------------------------------------------


def trained(steps: int, checkpoint: dict[str, Any] | None = None) -> tuple[list[Any], dict[str, Any]]:
    """Batches of two epochs with what a model would draw after each, up to a step; and a checkpoint of that step."""
    torch.manual_seed(HERE)
    loader, said = shuffled(), []
    done = 0
    if checkpoint is not None:
        loader.load_state_dict(checkpoint["loader"])
        done = checkpoint["done"]
        torch.set_rng_state(checkpoint["random"])
    for _ in range(loader.state_dict()["epoch"], 2):
        for batch in loader:
            said.append([*plain([batch]), torch.rand(1).item()])
            done += 1
            if done == steps:
                return said, {"done": done, "random": torch.get_rng_state(), "loader": loader.state_dict()}
    return said, {}


@pytest.mark.parametrize("steps", [3, 8, 11])
def test_a_resumed_model_draws_the_numbers_that_it_would_have_drawn(steps):
    """When the trainer's random state is part of the checkpoint and set again before the loop, as everybody does."""
    whole, _ = trained(99)
    first, checkpoint = trained(steps)
    rest, _ = trained(99, checkpoint)
    assert first + rest == whole


@pytest.mark.parametrize("epochs", [0, 1])
def test_to_take_a_state_draws_nothing(epochs):
    torch.manual_seed(HERE)
    loader = shuffled()
    for _ in range(epochs):
        plain(loader)
    before = torch.get_rng_state()
    loader.state_dict()
    assert torch.equal(torch.get_rng_state(), before)


# -- faults ------------------------------------------------------------------------------------------


class Rotten(Dataset):
    """One sample is bad. ``passed`` is made when a batch behind it has been begun."""

    def __init__(self, passed: Path) -> None:
        self.passed = passed

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> int:
        if index == 9:
            raise ValueError("rotten")
        if index == 14:
            self.passed.touch()
        return index


def test_what_was_skipped_ahead_of_the_checkpoint_is_counted_once(tmp_path):
    def make() -> DataLoader:
        passed = tmp_path / "passed"
        return DataLoader(Rotten(passed), batch_size=2, num_workers=1, prefetch_factor=10, on_error="skip")

    loader = make()
    batches = iter(loader)
    next(batches)
    wait_until((tmp_path / "passed").exists)
    next(batches)  # hears of the bad one, which is in the fifth batch
    state = loader.state_dict()
    del batches
    other = make()
    other.load_state_dict(state)
    assert sum(map(len, other)) == 36
    assert other.faults.skipped == 1


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


if __name__ == "__main__":
    import sys

    on_a_rank(Path(sys.argv[1]))
