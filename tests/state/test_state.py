"""What a state is: plain, small, taken without doing anything; and what is said of one that does not fit."""

from __future__ import annotations

import copy
import io
import json
import random
from collections.abc import Callable
from typing import Any

import numpy
import psutil
import pytest
import torch
import torch.utils.data
from datasets import (
    ELSEWHERE,
    HERE,
    SAMPLERS,
    STREAMS,
    Augmented,
    OwnState,
    Shuffled,
    Stream,
    StreamOfItems,
    all_epochs,
    begin,
    check_from,
    close,
    drawn,
    drawn_by_thread,
    elsewhere,
    generator,
    map_loader,
    rest,
    stops,
    stream_loader,
    through_json,
)
from torch.utils.data import RandomSampler, WeightedRandomSampler

from holdfast import DataLoader, DistributedSampler, LoadedTooLate, StateMismatch, StateTooNew
from holdfast.policies import Leave
from holdfast.testing import Faulty, RaisesAt

PLAIN = {type(None), bool, int, float, str, list, dict}
Stock = torch.utils.data.DataLoader


def only_plain(value: Any) -> bool:
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(map(only_plain, value.values()))
    return all(map(only_plain, value)) if type(value) is list else type(value) in PLAIN


def through_torch(state: Any) -> Any:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def generators() -> list[Any]:
    """Where the trainer's random numbers are, the gaussian that numpy keeps included."""
    of_numpy = numpy.random.get_state(legacy=False)
    return [torch.get_rng_state().tolist(), random.getstate(), repr(of_numpy), of_numpy["state"]["key"].tolist()]


# -- what it looks like --------------------------------------------------------------------------

ANY: dict[str, Callable[[int], Any]] = {
    **{f"map: {name}": lambda seed, name=name: map_loader(seed, name) for name in SAMPLERS},
    **{f"stream: {name}": lambda seed, name=name: stream_loader(STREAMS[name]()) for name in STREAMS},
}


@pytest.mark.parametrize("name", ANY)
def test_a_state_is_plain_and_passes_through_json_and_torch(name: str):
    begin()
    found, _ = stops(ANY[name](HERE), 2)
    for _, _, state in found:
        assert only_plain(state)
        assert through_json(state) == state
        assert through_torch(state) == state
        assert not name.startswith("map") or len(json.dumps(state)) <= 4096


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["map", "stream"])
def test_what_was_saved_by_torch_is_gone_on_from(kind: str, workers: int):
    def make(seed: int) -> Any:
        if kind == "map":
            return map_loader(seed, "lazy", num_workers=workers)
        return stream_loader(StreamOfItems(), num_workers=workers)

    begin()
    whole = all_epochs(make(HERE), 2)
    begin()
    found, _ = stops(make(HERE), 1)
    check_from([stop._replace(state=through_torch(stop.state)) for stop in found[2:5]], whole, make)


HUGE = 10_000_000


def test_a_state_is_small_whatever_the_size():
    """Ten million samples, of which a hundred were found to be bad."""
    bad = [HUGE - 1 - 7 * number for number in range(100)]
    dataset = Faulty(Augmented(HUGE), *(RaisesAt(index, lambda: ValueError("bad")) for index in bad))
    loader = DataLoader(dataset, batch_size=100, sampler=[*bad, *range(1000)], on_error="skip")
    loader.faults.warn = False
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    assert state["faults"]["bad"]
    assert len(json.dumps(state)) <= 4096


def test_a_state_with_bad_samples_and_a_generator_is_small():
    bad = [HUGE - 1 - 7 * number for number in range(100)]
    dataset = Faulty(range(HUGE), *(RaisesAt(index, lambda: ValueError("bad")) for index in bad))
    sampler = WeightedRandomSampler([1.0, 1.0], 1000, generator=generator(3, 400))
    loader = DataLoader(dataset, batch_size=100, sampler=sampler, on_error="skip")
    for index in bad:
        loader.faults.remember(index, answer=Leave())
    next(iter(loader))
    state = loader.state_dict()
    assert state["faults"]["bad"]
    assert len(json.dumps(state)) <= 4096


# -- taken ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["map", "stream"])
def test_a_state_before_the_first_epoch_starts_nobody_and_can_be_had_again(kind: str):
    begin()
    whole = all_epochs(map_loader(HERE) if kind == "map" else stream_loader(Stream()), 1)
    begin()
    loader = map_loader(HERE, num_workers=2) if kind == "map" else stream_loader(Stream(), num_workers=1)
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    states = [loader.state_dict() for _ in range(3)]
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before
    assert states[0] == states[1] == states[2]
    assert states[0]["epoch"] == states[0]["batch"] == 0
    assert all_epochs(loader, 1) == whole


@pytest.mark.parametrize("name", ["map: shuffle", "map: lazy", "map: state on itself", "stream: on the iterator"])
def test_a_state_is_not_changed_by_going_on(name: str):
    loader = ANY[name](HERE)
    kept = list[tuple[Any, Any]]()
    for _ in loader:
        state = loader.state_dict()
        kept.append((state, copy.deepcopy(state)))
    list(loader)
    assert all(state == then for state, then in kept)


@pytest.mark.parametrize("name", ANY)
def test_a_state_that_was_loaded_is_the_state(name: str):
    """Until the first batch, and it is not the same object."""
    begin()
    found, _ = stops(ANY[name](HERE), 1)
    for number, stop in enumerate(found):
        elsewhere(number)
        loader, state = ANY[name](HERE), copy.deepcopy(stop.state)
        loader.load_state_dict(state)
        assert loader.state_dict() == stop.state
        loader.state_dict().clear()
        state.clear()
        assert loader.state_dict() == stop.state
        batches = iter(loader)
        if name != "map: our ranks":
            assert loader.state_dict()["batch"] == stop.batch
        del batches


def test_unknown_keys_mean_nothing():
    begin()
    whole = all_epochs(map_loader(HERE), 1)
    begin()
    found, _ = stops(map_loader(HERE), 1)
    state = {**found[3].state, "colour": {"of": ["the", "sky"]}}
    assert rest(map_loader(ELSEWHERE), found[3]._replace(state=state), 1) == [whole[0][found[3].batch :]]


# -- the trainer's random numbers ----------------------------------------------------------------


@pytest.mark.parametrize("workers", [{"num_workers": 0}, {"num_workers": 2, "workers": "thread"}], ids=["0", "threads"])
@pytest.mark.parametrize("name", ["shuffle", "lazy", "batches", "weighted", "state on itself"])
@pytest.mark.parametrize("gaussians", [0, 1])
def test_the_trainers_random_numbers_are_left_as_they_were(name: str, workers: dict[str, Any], gaussians: int):
    draw = drawn if not workers["num_workers"] else drawn_by_thread
    loader = map_loader(HERE, name, Augmented(draw=draw), **workers)
    batches = iter(loader)
    for _ in range(3):
        numpy.random.randn(gaussians)
        random.gauss(0, 1)
        before = generators()
        next(batches)
        loader.state_dict()
        assert generators() == before
    before = generators()
    loader.load_state_dict(loader.state_dict())
    assert generators() == before


@pytest.mark.parametrize("epochs", [0, 1])
def test_to_ask_for_the_state_between_epochs_draws_nothing_from_the_trainers_generator(epochs: int):
    loader = map_loader(HERE)
    for _ in range(epochs):
        list(loader)
    before = generators()
    loader.state_dict()
    assert generators() == before


@pytest.mark.parametrize("workers", [0, 2])
def test_a_model_that_gets_its_random_state_back_goes_on_as_if_it_had_not_been_stopped(workers: int):
    """As programs do it: all generators are saved beside the state, and are set before the loop goes on."""

    def train(loader: Any, stop_at: int = 0) -> tuple[list[float], Any]:
        noise, saved = list[float](), None
        for given, _ in enumerate(loader, 1):
            noise.append(torch.rand(()).item())
            if given == stop_at:
                saved = loader.state_dict(), torch.get_rng_state()
        return noise, saved

    begin()
    noise, saved = train(map_loader(HERE, num_workers=workers), 2)
    elsewhere()
    loader = map_loader(ELSEWHERE, num_workers=workers)
    loader.load_state_dict(saved[0])
    torch.set_rng_state(saved[1])
    assert train(loader)[0] == noise[2:]


def orders(loader: Any, count: int, before: Callable[[int], object] = lambda epoch: None) -> list[list[Any]]:
    found = []
    for epoch in range(count):
        before(epoch)
        found.append([batch.tolist() for batch in loader])
    return found


ORDERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "shuffle": lambda n: {"shuffle": True},
    "generator": lambda n: {"shuffle": True, "generator": generator(5)},
    "own generator": lambda n: {"sampler": RandomSampler(range(n), generator=generator(5))},
    "replacement": lambda n: {"sampler": RandomSampler(range(n), replacement=True)},
    "some": lambda n: {"sampler": RandomSampler(range(n), num_samples=7)},
    "weighted": lambda n: {"sampler": WeightedRandomSampler(list(range(1, n + 1)), n)},
    "weighted, generator": lambda n: {
        "sampler": WeightedRandomSampler(list(range(1, n + 1)), n, generator=generator(5, 3))
    },
}


@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used"])
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("name", ORDERS)
def test_the_first_order_is_torchs(name: str, workers: int, used: bool):
    if used and name == "weighted":
        return  # of a sampler that draws from torch's generator itself, only where that is freshly seeded

    def first(make: Any) -> Any:
        begin()
        if used:
            drawn()  # as a model does that is made before
        return orders(make(range(20), batch_size=4, num_workers=workers, **ORDERS[name](20)), 1)

    assert first(DataLoader) == first(Stock)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("name", ["shuffle", "replacement", "some", "weighted"])
def test_seeded_before_each_epoch_it_means_what_it_means_with_torch(name: str, workers: int):
    def seeded(make: Any, seed: Callable[[int], int]) -> Any:
        loader = make(range(20), batch_size=4, num_workers=workers, **ORDERS[name](20))
        return orders(loader, 3, lambda epoch: torch.manual_seed(seed(epoch)))

    same = seeded(DataLoader, lambda epoch: 3)
    assert same[0] == same[1] == same[2]
    assert seeded(DataLoader, lambda epoch: epoch) == seeded(Stock, lambda epoch: epoch)


def test_seeded_before_each_epoch_augmentation_repeats_itself():
    loader = map_loader(HERE)
    epochs = []
    for _ in range(3):
        torch.manual_seed(3)
        epochs.append(list(loader))
    assert epochs[0] == epochs[1] == epochs[2]


@pytest.mark.parametrize("name", ["shuffle", "shuffle, generator", "lazy", "weighted", "replacement", "sequential"])
def test_the_trainers_draws_change_no_later_epoch(name: str):
    begin()
    quiet = map_loader(HERE, name)
    expected = [list(quiet) for _ in range(3)]
    begin()
    assert all_epochs(map_loader(HERE, name), 3) == expected


def seeded_epochs(loader: Any, first: int, count: int, seed: bool) -> list[Any]:
    found = []
    for epoch in range(first, count):
        if seed:
            torch.manual_seed(epoch)
        found.append(list(loader))
    return found


def test_a_program_that_seeds_before_each_epoch_can_be_stopped_between_epochs():
    whole = seeded_epochs(map_loader(HERE), 0, 3, seed=True)
    loader = map_loader(HERE)
    assert seeded_epochs(loader, 0, 1, seed=True) == whole[:1]
    other = map_loader(ELSEWHERE)
    other.load_state_dict(loader.state_dict())
    assert seeded_epochs(other, 1, 3, seed=True) == whole[1:]


def test_a_program_that_seeds_before_each_epoch_can_be_stopped_in_the_middle_of_one():
    whole = seeded_epochs(map_loader(HERE), 0, 3, seed=True)
    loader = map_loader(HERE)
    torch.manual_seed(0)
    batches = iter(loader)
    given = [next(batches), next(batches)]
    other = map_loader(ELSEWHERE)
    other.load_state_dict(loader.state_dict())
    rest = seeded_epochs(other, 0, 3, seed=True)
    assert [[*given, *rest[0]], *rest[1:]] == whole


# -- loaded too late -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_workers": 2},
        {"num_workers": 2, "persistent_workers": True},
        {"num_workers": 2, "workers": "thread"},
    ],
    ids=["trainer", "workers", "persistent", "threads"],
)
@pytest.mark.parametrize("kind", ["map", "stream", "state"])
def test_an_iterator_from_before_the_load_raises_and_the_next_one_is_right(kind: str, options: dict[str, Any]):
    def make() -> Any:
        draw = drawn_by_thread if "workers" in options else drawn
        if kind == "map":
            return map_loader(HERE, dataset=Augmented(draw=draw), **options)
        return stream_loader((Stream if kind == "stream" else StreamOfItems)(draw=draw), **options)

    begin()
    whole = all_epochs(make(), 3)
    begin()
    loader = make()
    batches = iter(loader)
    next(batches)
    state = through_json(loader.state_dict())
    next(batches)
    for _ in range(2):
        loader.load_state_dict(state)
        for _ in range(2):
            with pytest.raises(LoadedTooLate, match=r"load_state_dict\(\) was called after .*HF603"):
                next(batches)
        batches = iter(loader)
        assert next(batches) == whole[0][1]
        assert loader.state_dict()["batch"] == 2
    assert [*batches] == whole[0][2:]
    assert [[*loader], [*loader]] == whole[1:]
    close(loader)


@pytest.mark.filterwarnings("ignore:next.iter.loader")  # here it is meant
@pytest.mark.parametrize("taken", [1, 3])
@pytest.mark.parametrize("persistent", [False, True], ids=["new workers", "persistent"])
@pytest.mark.parametrize("kind", ["map", "state"])
def test_a_loop_that_was_left_and_its_loader_rewound_goes_on_right(kind: str, persistent: bool, taken: int):
    """Again and again, so that the workers of one iterator are taken over by the next."""
    options = {"num_workers": 2, "persistent_workers": persistent}

    def make() -> Any:
        return map_loader(HERE, **options) if kind == "map" else stream_loader(StreamOfItems(), **options)

    begin()
    whole = all_epochs(make(), 2)
    begin()
    loader, states = make(), list[Any]()
    for _ in loader:
        states.append(loader.state_dict())
        if len(states) == 3:
            break
    for given in (1, 2, 1, 1, 2):
        loader.load_state_dict(states[given - 1])
        batches = iter(loader)
        assert [next(batches) for _ in range(min(taken, 4 - given))] == whole[0][given : min(given + taken, 4)]
        del batches
    loader.load_state_dict(states[0])
    assert [[*loader], [*loader]] == [whole[0][1:], whole[1]]
    close(loader)


# -- what does not fit ---------------------------------------------------------------------------


def in_the_middle(**options: Any) -> dict[str, Any]:
    loader = DataLoader(**{"dataset": range(12), "batch_size": 2, **options})
    batches = iter(loader)
    next(batches)
    return loader.state_dict()


def ranks(**options: Any) -> DistributedSampler:
    return DistributedSampler(range(12), **{"num_replicas": 2, "rank": 0, "seed": 3, **options})


MISMATCHES: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, str]]] = {
    "length": ({}, {"dataset": range(13)}, ("data set length 12", "13")),
    "kind of data set": ({}, {"dataset": Stream(12)}, ("data of the kind map-style", "iterable")),
    "kind of data set, the other way": (
        {"dataset": Stream(12)},
        {"dataset": range(12)},
        ("data of the kind iterable", "map-style"),
    ),
    "sampler": ({"shuffle": True}, {}, ("sampler random", "sequential (SequentialSampler)")),
    "sampler of one's own": ({}, {"sampler": Shuffled(12)}, ("sampler sequential", "other (Shuffled)")),
    "sampler length": (
        {"sampler": RandomSampler(range(12), num_samples=8)},
        {"sampler": RandomSampler(range(12), num_samples=9)},
        ("sampler length 8", "9"),
    ),
    "seed of ranks": ({"sampler": ranks()}, {"sampler": ranks(seed=4)}, ("sampler seed 3", "4")),
    "shuffle of ranks": ({"sampler": ranks()}, {"sampler": ranks(shuffle=False)}, ("sampler shuffle True", "False")),
    "batch size of a stream": (
        {"dataset": Stream(12)},
        {"dataset": Stream(12), "batch_size": 3},
        ("batch_size 2", "3"),
    ),
    "batch size of a sampler that is asked again": (
        {"sampler": Shuffled(12)},
        {"sampler": Shuffled(12), "batch_size": 3},
        ("batch_size 2", "3"),
    ),
    "shard": (
        {"dataset": Stream(12, whole=True), "shard": "worker"},
        {"dataset": Stream(12, whole=True)},
        ("shard worker", "None"),
    ),
    "num_workers": (
        {"dataset": Stream(12), "num_workers": 1},
        {"dataset": Stream(12), "num_workers": 2},
        ("num_workers 1", "2"),
    ),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_a_state_that_does_not_fit_is_an_error_with_both_values(name: str):
    saved, here, (then, now) = MISMATCHES[name]
    state = in_the_middle(**saved)
    loader: DataLoader[Any] = DataLoader(**{"dataset": range(12), "batch_size": 2, **here})
    with pytest.raises(StateMismatch, match="HF602") as caught:
        loader.load_state_dict(state)
    assert f"saved with {then}, and this loader has {now}: " in str(caught.value).splitlines()[0]


class Fewer(Shuffled):
    def __iter__(self) -> Any:
        return iter(range(1))


def test_a_sampler_that_gives_fewer_than_it_did_is_an_error_with_both_values():
    state = in_the_middle(sampler=Shuffled(12), batch_size=1)
    state["batch"] = 3
    loader: DataLoader[Any] = DataLoader(range(12), batch_size=1, sampler=Fewer(12))
    loader.load_state_dict(state)
    with pytest.raises(StateMismatch, match=r"batches of its sampler 3, and this loader has 1: .*HF602"):
        iter(loader)


def test_a_data_set_that_has_no_state_any_more_is_an_error():
    state = in_the_middle(dataset=StreamOfItems(12))
    loader: DataLoader[Any] = DataLoader(Stream(12), batch_size=2)
    loader.load_state_dict(state)
    with pytest.raises(StateMismatch, match=r"has no load_state_dict.*HF602"):
        list(loader)


def test_another_epoch_than_the_one_to_be_gone_on_with_is_an_error_with_both_values():
    sampler = ranks()
    sampler.set_epoch(4)
    state = in_the_middle(sampler=sampler)
    other = ranks()
    other.set_epoch(5)
    loader: DataLoader[Any] = DataLoader(range(12), batch_size=2, sampler=other)
    loader.load_state_dict(state)
    with pytest.raises(StateMismatch, match=r"epoch 4, and this loader has 5: .*HF602"):
        iter(loader)


def test_a_state_of_a_later_format_is_an_error_with_both_numbers():
    loader = map_loader(HERE)
    state = {**loader.state_dict(), "holdfast": 7}
    with pytest.raises(StateTooNew, match=r"format 7, .* up to 1 \[HF605\]"):
        loader.load_state_dict(state)


@pytest.mark.parametrize(
    ("state", "error", "told"),
    [
        ({"model": {}, "epoch": 3}, ValueError, r"not a state of a holdfast loader: it has \['epoch', 'model'\]"),
        ({"holdfast": 1, "epoch": 3}, ValueError, "not whole: it has no batch, seed"),
        ([1, 2], TypeError, "a state is a dict, .* but got list"),
    ],
)
def test_what_is_no_state_is_an_error(state: Any, error: type[Exception], told: str):
    with pytest.raises(error, match=told):
        map_loader(HERE).load_state_dict(state)


def test_a_state_that_was_refused_changes_nothing():
    begin()
    whole = all_epochs(map_loader(HERE), 1)
    state = in_the_middle(shuffle=True)
    begin()
    loader = map_loader(HERE)
    batches = iter(loader)
    first = next(batches)
    with pytest.raises(StateMismatch):
        loader.load_state_dict(state)
    assert [first, *batches] == whole[0]


def test_between_epochs_another_length_is_accepted():
    loader = map_loader(HERE)
    list(loader)
    other = map_loader(ELSEWHERE, dataset=Augmented(13))
    other.load_state_dict(loader.state_dict())
    assert sorted(sample[0] for batch in other for sample in batch) == list(range(13))


@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"sampler": ranks()}, {"sampler": OwnState(12)}])
def test_another_batch_size_is_accepted_where_the_place_is_known_in_samples(options: dict[str, Any]):
    begin()
    loader: DataLoader[Any] = DataLoader(range(12), batch_size=2, **options)
    whole = [index for batch in loader for index in batch.tolist()]
    begin()
    copied = {name: OwnState(12) if isinstance(value, OwnState) else value for name, value in options.items()}
    loader = DataLoader(range(12), batch_size=2, **copied)
    state = None
    for _ in zip(range(2), loader):
        state = loader.state_dict()
    assert state is not None
    other: DataLoader[Any] = DataLoader(range(12), batch_size=3, **copied)
    other.load_state_dict(state)
    assert [index for batch in other for index in batch.tolist()] == whole[4:]
