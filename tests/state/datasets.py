"""What the tests of resume share: samples that show all that is random in them, samplers of every kind, and a way to
stop a run everywhere and to go on from each of these places in another loader."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy
import torch
from torch.utils.data import (
    BatchSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    get_worker_info,
)
from torch.utils.data.distributed import DistributedSampler as TorchDistributedSampler

import holdfast
from holdfast import DataLoader

LENGTH, SIZE, EPOCHS = 10, 3, 3
HERE, ELSEWHERE = 1234, 99  # seeds of the run that is stopped, and of those that go on with it


def drawn() -> list[float]:
    """What augmentations draw: an odd number of gaussians, as their second one is kept for the next call."""
    return [torch.rand(()).item(), torch.randn(()).item(), numpy.random.randn(), random.random(), random.gauss(0, 1)]


def drawn_by_thread() -> list[float]:
    rng = holdfast.get_worker_info().rng
    of_torch = torch.rand((), generator=rng.torch_generator).item()
    return [of_torch, rng.random_generator.random(), rng.numpy_generator.standard_normal()]


def keep(samples: Any) -> Any:
    return samples


class Augmented:
    """Map-style: each sample is its index and what an augmentation drew for it."""

    def __init__(self, length: int = LENGTH, draw: Callable[[], list[float]] = drawn) -> None:
        self.length, self.draw = length, draw

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> list[float]:
        return [index, *self.draw()]


# -- samplers ------------------------------------------------------------------------------------


class Shuffled(Sampler[int]):
    """As users write it: the order from Python's global generator, all of it at the beginning."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        order = list(range(self.length))
        random.shuffle(order)
        return iter(order)


class Lazy(Shuffled):
    """Draws from all three global generators, one step at a time."""

    def __iter__(self) -> Iterator[int]:
        for _ in range(self.length):
            of_numpy, of_torch = numpy.random.randint(self.length), int(torch.randint(self.length, ()))
            yield (of_numpy + of_torch + random.randrange(self.length) + int(10 * numpy.random.randn())) % self.length


class Batches(Sampler[list[int]]):
    """Batches of sizes that are drawn."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length // 2

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(len(self)):
            yield [random.randrange(self.length) for _ in range(numpy.random.randint(1, 4))]


class OwnState(Shuffled):
    """Keeps its order and place on itself; its iterator is a generator."""

    order: list[int] | None = None
    place = 0

    def __iter__(self) -> Iterator[int]:
        if self.order is None:
            self.order, self.place = random.sample(range(self.length), self.length), 0
        while self.place < self.length:
            self.place += 1
            yield self.order[self.place - 1]
        self.order = None

    def state_dict(self) -> dict[str, Any]:
        return {"order": tuple(self.order) if self.order is not None else None, "place": self.place}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        order = state["order"]
        self.order, self.place = order and list(order), state["place"]


class Steps:
    """An iterator with a state."""

    def __init__(self, order: list[int]) -> None:
        self.order, self.place = order, 0

    def __iter__(self) -> Steps:
        return self

    def __next__(self) -> int:
        if self.place == len(self.order):
            raise StopIteration
        self.place += 1
        return self.order[self.place - 1]

    def state_dict(self) -> dict[str, Any]:
        return {"order": numpy.array(self.order), "place": self.place}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.order, self.place = state["order"].tolist(), state["place"]


class StateOfIterator(Shuffled):
    def __iter__(self) -> Iterator[int]:
        return Steps(random.sample(range(self.length), self.length))


class Counting(Shuffled):
    """A state that counts epochs, too: each has an order of its own, by its number."""

    epoch_number = place = 0

    def __iter__(self) -> Iterator[int]:
        order = random.Random(self.epoch_number).sample(range(self.length), self.length)
        while self.place < self.length:
            self.place += 1
            yield order[self.place - 1]
        self.epoch_number, self.place = self.epoch_number + 1, 0

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch_number, "place": self.place}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.epoch_number, self.place = state["epoch"], state["place"]


def generator(seed: int, used: int = 0) -> torch.Generator:
    made = torch.Generator().manual_seed(seed)
    torch.rand(used, generator=made)
    return made


def _weights(length: int) -> list[float]:
    return [1.0 + number % 3 for number in range(length)]


# By name: options of a loader for a data set of so many samples, made as by a program with this seed.
SAMPLERS: dict[str, Callable[[int, int], dict[str, Any]]] = {
    "sequential": lambda n, seed: {},
    "shuffle": lambda n, seed: {"shuffle": True},
    "shuffle, generator": lambda n, seed: {"shuffle": True, "generator": generator(seed)},
    "shuffle, used generator": lambda n, seed: {"shuffle": True, "generator": generator(seed, 3)},
    "sequential, generator": lambda n, seed: {"generator": generator(seed)},
    "random, own generator": lambda n, seed: {"sampler": RandomSampler(range(n), generator=generator(seed))},
    "random, own used generator": lambda n, seed: {"sampler": RandomSampler(range(n), generator=generator(seed, 3))},
    "random, two generators": lambda n, seed: {
        "sampler": RandomSampler(range(n), generator=generator(seed)),
        "generator": generator(seed + 1),
    },
    "random, some": lambda n, seed: {"sampler": RandomSampler(range(n), num_samples=n - 3)},
    "random, more than all": lambda n, seed: {"sampler": RandomSampler(range(n), num_samples=2 * n + 1)},
    "replacement": lambda n, seed: {"sampler": RandomSampler(range(n), replacement=True)},
    "replacement, generator": lambda n, seed: {
        "sampler": RandomSampler(range(n), replacement=True, num_samples=n + 4, generator=generator(seed))
    },
    "weighted": lambda n, seed: {"sampler": WeightedRandomSampler(_weights(n), n)},
    "weighted, generator": lambda n, seed: {
        "sampler": WeightedRandomSampler(_weights(n), n, generator=generator(seed))
    },
    "weighted, used generator": lambda n, seed: {
        "sampler": WeightedRandomSampler(_weights(n), n, generator=generator(seed, 3))
    },
    "subset": lambda n, seed: {"sampler": SubsetRandomSampler(range(0, n, 2))},
    "subset, generator": lambda n, seed: {"sampler": SubsetRandomSampler(range(0, n, 2), generator(seed))},
    "torch's ranks": lambda n, seed: {"sampler": TorchDistributedSampler(range(n), 2, 1, seed=5)},
    "our ranks": lambda n, seed: {"sampler": holdfast.DistributedSampler(range(n), 2, 1, seed=5)},
    "a list": lambda n, seed: {"sampler": [*range(0, n, 2), *range(1, n, 2)]},
    "random.shuffle": lambda n, seed: {"sampler": Shuffled(n)},
    "lazy": lambda n, seed: {"sampler": Lazy(n)},
    "batches": lambda n, seed: {"batch_sampler": Batches(n)},
    "batches of random": lambda n, seed: {"batch_sampler": BatchSampler(RandomSampler(range(n)), 4, True)},
    "batches of sequential as samples": lambda n, seed: {
        "sampler": BatchSampler(SequentialSampler(range(n)), 1, False),
        "batch_size": None,
        "collate_fn": None,
    },
    "state on itself": lambda n, seed: {"sampler": OwnState(n)},
    "state on its iterator": lambda n, seed: {"sampler": StateOfIterator(n)},
    "state that counts epochs": lambda n, seed: {"sampler": Counting(n)},
    "single samples": lambda n, seed: {"shuffle": True, "batch_size": None},
    "drop_last": lambda n, seed: {"shuffle": True, "drop_last": True},
    "weighted, drop_last": lambda n, seed: {"sampler": WeightedRandomSampler(_weights(n), n), "drop_last": True},
}


def map_loader(seed: int, sampler: str = "shuffle", dataset: Any = None, **options: Any) -> DataLoader[Any]:
    """As a program makes it that has this seed."""
    dataset = Augmented() if dataset is None else dataset
    chosen = SAMPLERS[sampler](len(dataset), seed)
    size = {} if "batch_sampler" in chosen else {"batch_size": SIZE}
    loader = DataLoader(dataset, **{"collate_fn": keep, **size, **chosen, **options})
    loader.faults.warn = False
    return loader


# -- streams -------------------------------------------------------------------------------------


def share(length: int) -> range:
    """This worker's part of the numbers."""
    info = holdfast.get_worker_info() or get_worker_info()
    return range(length) if info is None else range(info.id, length, info.num_workers)


class Stream(IterableDataset):
    """Without a state; each worker has its own part, unless ``whole``."""

    def __init__(self, length: int = LENGTH, *, whole: bool = False, draw: Callable[[], list[float]] = drawn) -> None:
        self.length, self.whole, self.draw = length, whole, draw

    def numbers(self) -> list[int]:
        return list(range(self.length) if self.whole else share(self.length))

    def item(self, number: int) -> list[float]:
        return [number, *self.draw()]

    def __iter__(self) -> Iterator[Any]:
        for number in self.numbers():
            yield self.item(number)


class StreamWithState(Stream):
    """Its place on itself; its iterator is a generator."""

    place = 0

    def __iter__(self) -> Iterator[Any]:
        numbers = self.numbers()
        while self.place < len(numbers):
            self.place += 1
            yield self.item(numbers[self.place - 1])
        self.place = 0

    def state_dict(self) -> dict[str, Any]:
        return {"place": numpy.int64(self.place)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        assert isinstance(state["place"], numpy.int64)
        self.place = int(state["place"])


class Items:
    """An iterator with a state."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.numbers, self.place = stream, stream.numbers(), 0

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> Any:
        if self.place == len(self.numbers):
            raise StopIteration
        self.place += 1
        return self.stream.item(self.numbers[self.place - 1])

    def state_dict(self) -> dict[str, Any]:
        return {"place": (self.place,)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        (self.place,) = state["place"]


class StreamOfItems(Stream):
    def __iter__(self) -> Iterator[Any]:
        return Items(self)


class OwnIterator(Stream):
    """A data set that is its own iterator, and has a state."""

    place = 0
    left: list[int] | None = None

    def __iter__(self) -> Iterator[Any]:
        self.left = self.numbers()
        if self.place >= len(self.left):
            self.place = 0
        return self

    def __next__(self) -> Any:
        assert self.left is not None
        if self.place >= len(self.left):
            raise StopIteration
        self.place += 1
        return self.item(self.left[self.place - 1])

    def state_dict(self) -> dict[str, int]:
        return {"place": self.place}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.place = state["place"]


STREAMS: dict[str, type[Stream]] = {
    "no state": Stream,
    "on the data set": StreamWithState,
    "on the iterator": StreamOfItems,
    "its own iterator": OwnIterator,
}


def stream_loader(dataset: Any, **options: Any) -> DataLoader[Any]:
    loader = DataLoader(dataset, **{"batch_size": 2, "collate_fn": keep, **options})
    loader.faults.warn = False
    return loader


# -- stopped and resumed -------------------------------------------------------------------------


def elsewhere(seed: int = ELSEWHERE) -> None:
    """The program's own generators are where no other run had them."""
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    random.seed(seed)
    drawn()


def begin(seed: int = HERE) -> None:
    """As a program begins that wants to be reproducible."""
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    random.seed(seed)


class Stop(NamedTuple):
    """Behind ``batch`` batches of an epoch."""

    epoch: int
    batch: int
    state: dict[str, Any]


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    copied: dict[str, Any] = json.loads(json.dumps(state, allow_nan=False))
    return copied


def close(loader: Any) -> None:
    """End workers that stay."""
    loader._iterator = None


def start_epoch(loader: Any, epoch: int) -> Iterator[Any]:
    if isinstance(loader.sampler, torch.utils.data.DistributedSampler):
        loader.sampler.set_epoch(epoch)
    return iter(loader)


def all_epochs(loader: Any, count: int = EPOCHS + 1) -> list[list[Any]]:
    """Uninterrupted, while the trainer draws random numbers of its own."""
    epochs = []
    for epoch in range(count):
        batches = []
        for batch in start_epoch(loader, epoch):
            batches.append(batch)
            drawn()
        epochs.append(batches)
        drawn()
    close(loader)
    return epochs


def stops(loader: Any, count: int = EPOCHS) -> tuple[list[Stop], list[list[Any]]]:
    """A state at every place of so many epochs, both where two are the same place; and what was given meanwhile."""
    found, epochs = [Stop(0, 0, loader.state_dict())], []
    for epoch in range(count):
        batches, given = start_epoch(loader, epoch), list[Any]()
        found.append(Stop(epoch, 0, loader.state_dict()))
        for batch in batches:
            given.append(batch)
            found.append(Stop(epoch, len(given), loader.state_dict()))
            drawn()
        epochs.append(given)
        found.append(Stop(epoch + 1, 0, loader.state_dict()))
    close(loader)
    return found, epochs


def rest(loader: Any, stop: Stop, count: int = EPOCHS + 1) -> list[list[Any]]:
    """What is left of so many epochs."""
    loader.load_state_dict(through_json(stop.state))
    epochs = []
    for epoch in range(stop.epoch, count):
        batches = []
        for batch in start_epoch(loader, epoch):
            batches.append(batch)
            drawn()
        epochs.append(batches)
        drawn()
    close(loader)
    return epochs


def left_of(whole: list[list[Any]], stop: Stop) -> list[list[Any]]:
    return [whole[stop.epoch][stop.batch :], *whole[stop.epoch + 1 :]]


def check_everywhere(make: Callable[[int], Any], resume: Callable[[int], Any] | None = None, every: int = 1) -> None:
    """A run that is stopped at each place, or at each n-th, goes on as if it had not been stopped."""
    begin()
    whole = all_epochs(make(HERE))
    assert len(whole[0]) > 1
    begin()
    found, given = stops(make(HERE))
    assert given == whole[:EPOCHS]  # to ask where one is changes nothing
    check_from(found[::every], whole, resume or make)


def check_from(found: list[Stop], whole: list[list[Any]], resume: Callable[[int], Any]) -> None:
    for number, stop in enumerate(found, ELSEWHERE):
        elsewhere(number)
        assert rest(resume(number), stop, len(whole)) == left_of(whole, stop), f"resumed at {stop}"
