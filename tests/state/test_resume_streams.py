"""A run over an iterable data set that was stopped anywhere goes on with the very next batch, or says why it cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import (
    ELSEWHERE,
    HERE,
    STREAMS,
    Items,
    OwnIterator,
    Stop,
    Stream,
    StreamOfItems,
    StreamWithState,
    all_epochs,
    begin,
    check_everywhere,
    check_from,
    close,
    drawn_by_thread,
    elsewhere,
    rest,
    stops,
    stream_loader,
    through_json,
)
from hypothesis import given, settings
from hypothesis import strategies as some
from torch.utils.data import get_worker_info
from torch.utils.data.datapipes.iter import IterableWrapper

from holdfast import Replace, Retry, StateMismatch, StreamDiffers
from holdfast.testing import DiesAt, Fault, RaisesAt
from holdfast.testing.faults import Once

WORKERS = pytest.mark.parametrize("workers", [0, 1, 2])
KINDS = pytest.mark.parametrize("kind", STREAMS)


# -- every kind of state -------------------------------------------------------------------------


@pytest.mark.parametrize("every", [1, 3, 0])
@KINDS
def test_in_the_trainer(kind: str, every: int):
    check_everywhere(lambda seed: stream_loader(STREAMS[kind](), snapshot_every_n_steps=every))


def by_workers(kind: str, every: int, **options: Any) -> Any:
    """Of three workers one has nothing left of its stream a batch before the others."""
    return stream_loader(STREAMS[kind](16), snapshot_every_n_steps=every, num_workers=3, **options)


def check_by_workers(kind: str, every: int, chosen: slice, **options: Any) -> None:
    begin()
    whole = all_epochs(by_workers(kind, every, **options), 3)
    begin()
    found, given = stops(by_workers(kind, every, **options), 2)
    assert given == whole[:2]
    if kind == "on the data set" and options:
        found = [stop for stop in found if stop.batch < 7]  # test_a_worker_whose_stream_had_ended_...
    check_from(found[chosen], whole, lambda seed: by_workers(kind, every, **options))


@pytest.mark.parametrize("every", [1, 3])
@KINDS
def test_with_workers(kind: str, every: int):
    check_by_workers(kind, every, slice(every, None, 6))


@pytest.mark.parametrize("every", [1, 0])
@KINDS
def test_with_workers_that_stay(kind: str, every: int):
    check_by_workers(kind, every, slice(2, None, 3), persistent_workers=True)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}], ids=["new workers", "persistent"])
@pytest.mark.parametrize("every", [1, 3, 0])
@KINDS
def test_with_workers_stopped_anywhere(kind: str, every: int, options: dict[str, Any]):
    check_by_workers(kind, every, slice(None), **options)


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("kind", ["no state", "on the iterator"])
def test_with_threads(kind: str, every: int):
    def make(seed: int) -> Any:
        dataset = STREAMS[kind](draw=drawn_by_thread)
        return stream_loader(dataset, snapshot_every_n_steps=every, num_workers=2, workers="thread")

    check_everywhere(make)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_with_workers_started_in_any_way(start: str):
    def make(seed: int) -> Any:
        return stream_loader(StreamOfItems(), snapshot_every_n_steps=2, num_workers=1, start=start)

    begin()
    loader = stream_loader(StreamOfItems(), snapshot_every_n_steps=2, num_workers=1)
    whole = all_epochs(loader, 1)
    begin()
    found, _ = stops(stream_loader(StreamOfItems(), snapshot_every_n_steps=2, num_workers=1), 1)
    check_from([found[4]], whole, make)


@KINDS
def test_single_items_and_short_batches_left_out(kind: str):
    check_everywhere(lambda seed: stream_loader(STREAMS[kind](), batch_size=None, snapshot_every_n_steps=2), every=3)
    check_everywhere(lambda seed: stream_loader(STREAMS[kind](), batch_size=3, drop_last=True, num_workers=1), every=4)


@pytest.mark.parametrize("kind", ["no state", "on the iterator"])
def test_when_batches_come_out_of_order_each_is_given_once(kind: str):
    def make(seed: int) -> Any:
        return stream_loader(STREAMS[kind](24), num_workers=2, in_order=False)

    begin()
    whole = sorted(all_epochs(stream_loader(STREAMS[kind](24), num_workers=2), 1)[0])
    begin()
    loader, given = make(HERE), list[Any]()
    for batch in loader:
        given.append(batch)
        elsewhere()
        other = make(ELSEWHERE)
        other.load_state_dict(through_json(loader.state_dict()))
        assert sorted([*given, *other]) == whole


class Uneven(Stream):
    """Worker 0 has nothing, worker 1 few, worker 2 many."""

    def numbers(self) -> list[int]:
        info = get_worker_info()
        assert info is not None
        return list(range(100 * info.id, 100 * info.id + (0, 3, 10)[info.id]))


class UnevenItems(Uneven):
    def __iter__(self) -> Iterator[Any]:
        return Items(self)


class UnevenOwn(Uneven, OwnIterator):
    pass


class UnevenWithState(StreamWithState):
    """Worker 1 is at its end long before worker 0 is, with a batch that is full."""

    def numbers(self) -> list[int]:
        info = get_worker_info()
        assert info is not None
        return list(range(100 * info.id, 100 * info.id + (10, 2)[info.id]))


def test_a_worker_whose_stream_had_ended_begins_the_next_epoch_at_the_beginning():
    def make(seed: int) -> Any:
        return stream_loader(UnevenWithState(), num_workers=2, persistent_workers=True)

    begin()
    whole = all_epochs(make(HERE), 2)
    begin()
    found, given = stops(make(HERE), 1)
    assert given == whole[:1]
    check_from([found[5]], whole, make)  # it is known then that worker 1 has no more


@pytest.mark.parametrize("kind", [Uneven, UnevenItems, UnevenOwn])
@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}], ids=["new workers", "persistent"])
def test_with_uneven_workers(kind: type[Uneven], options: dict[str, Any]):
    def make(seed: int) -> Any:
        return stream_loader(kind(), num_workers=3, snapshot_every_n_steps=2, **options)

    begin()
    whole = all_epochs(make(HERE), 2)
    begin()
    found, given = stops(make(HERE), 1)
    assert given == whole[:1]
    check_from(found[::2], whole, make)


# -- again and again -----------------------------------------------------------------------------


@pytest.mark.parametrize(("every", "workers"), [(1, 0), (3, 0), (0, 0), (3, 2)])
@KINDS
def test_stopped_at_each_batch(kind: str, every: int, workers: int):
    def make() -> Any:
        return stream_loader(STREAMS[kind](), snapshot_every_n_steps=every, num_workers=workers)

    begin()
    whole = all_epochs(make(), 2)
    begin()
    epochs, state = list[list[Any]](), None
    for _ in range(2):
        batches = list[Any]()
        while len(batches) < 20:
            loader = make()
            if state is not None:
                loader.load_state_dict(through_json(state))
            batch = next(iter(loader), None)
            state = loader.state_dict()
            elsewhere(len(batches))
            if batch is None:
                break
            batches.append(batch)
        epochs.append(batches)
    assert epochs == whole


@pytest.mark.parametrize("workers", [0, 2])
@KINDS
def test_the_state_of_a_few_batches_ago(kind: str, workers: int):
    begin()
    loader, states = stream_loader(STREAMS[kind](30), num_workers=workers, snapshot_every_n_steps=2), list[Any]()
    whole, batches = list[Any](), iter(loader)
    while True:
        states.append(loader.state_dict())
        for back in range(min(len(whole), 7) + 1):
            assert loader.state_dict(at=len(whole) - back) == states[len(whole) - back]
        for at in (len(whole) + 1, -len(whole) - 1):
            with pytest.raises(ValueError, match=r"at should be .* but got at="):
                loader.state_dict(at=at)
        batch = next(batches, None)
        if batch is None:
            break
        whole.append(batch)
    found = [Stop(0, batch, states[batch]) for batch in (1, 6)]
    check_from(
        found, [whole], lambda seed: stream_loader(STREAMS[kind](30), num_workers=workers, snapshot_every_n_steps=2)
    )


def test_the_state_of_eight_batches_ago():
    loader = stream_loader(Stream(30))
    batches, states = iter(loader), list[Any]()
    for _ in range(8):
        states.append(loader.state_dict())
        next(batches)
    assert loader.state_dict(at=0) == states[0]


# -- another number of workers -------------------------------------------------------------------


@KINDS
def test_another_number_of_workers_is_an_error_in_the_middle_and_none_between_epochs(kind: str):
    loader = stream_loader(STREAMS[kind](), num_workers=2)
    batches = iter(loader)
    next(batches)
    with pytest.raises(StateMismatch, match=r"num_workers 2, and this loader has 3.*HF602") as caught:
        stream_loader(STREAMS[kind](), num_workers=3).load_state_dict(loader.state_dict())
    assert "shard" in str(caught.value)
    list(batches)
    other = stream_loader(STREAMS[kind](), num_workers=3)
    other.load_state_dict(loader.state_dict())
    assert sorted(item[0] for batch in other for item in batch) == list(range(10))


def numbers(batches: Any) -> Counter[int]:
    return Counter(int(item[0]) for batch in batches for item in batch)


COUNTS = ((2, 3, 1), (3, 0, 2), (0, 4, 4), (1, 2, 2))


@pytest.mark.parametrize("shard", ["worker", "auto"])
@pytest.mark.parametrize("kind", STREAMS)
def test_a_stream_that_we_divide_goes_on_with_any_number_of_workers(kind: str, shard: str):
    """Several times, back and forth; each item is given once, and no random number twice."""
    dataset = STREAMS[kind]
    for counts in COUNTS:
        given, state = list[Any](), None
        elsewhere(sum(counts))
        for number, workers in enumerate(counts):
            loader = stream_loader(dataset(40, whole=True), num_workers=workers, shard=shard)
            if state is not None:
                loader.load_state_dict(through_json(state))
            last = number == len(counts) - 1
            for taken, batch in enumerate(loader, 1):
                given.append(batch)
                state = loader.state_dict()
                if taken == 4 + number and not last:
                    break
        assert numbers(given) == Counter(range(40)), counts
        assert len({item[1] for batch in given for item in batch}) == 40, counts


# -- crashes -------------------------------------------------------------------------------------


class Struck(Items):
    """An iterator that meets faults; it goes on behind an item that raised."""

    def __next__(self) -> Any:
        place = self.place
        item = super().__next__()
        for fault in self.stream.faults:  # type: ignore[attr-defined]
            fault.meet(self.numbers[place])
        return item


class StruckWithoutState:
    def __init__(self, stream: Stream) -> None:
        self.items = Struck(stream)

    def __iter__(self) -> StruckWithoutState:
        return self

    def __next__(self) -> Any:
        return next(self.items)


class Faulty(Stream):
    def __init__(self, length: int, *faults: Fault, state: bool = False, **options: Any) -> None:
        super().__init__(length, **options)
        self.faults, self.state = faults, state

    def __iter__(self) -> Iterator[Any]:
        return Struck(self) if self.state else StruckWithoutState(self)


class FaultyOwn(Faulty):
    """Its state is on itself, its iterator a generator."""

    place = 0

    def __iter__(self) -> Iterator[Any]:
        numbers = self.numbers()
        while self.place < len(numbers):
            self.place += 1
            for fault in self.faults:
                fault.meet(numbers[self.place - 1])
            yield self.item(numbers[self.place - 1])
        self.place = 0

    def state_dict(self) -> dict[str, int]:
        return {"place": self.place}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.place = state["place"]


def in_order(state: dict[str, Any]) -> dict[str, Any]:
    """Without whether a worker has come to the end of its stream already: it is ahead of what was given."""
    told = through_json(state)
    for stream in told.get("streams", []):
        del stream["ended"]
    for worker in told["_snapshot"]["_worker_snapshots"].values():
        del worker["fetcher_state"]["fetcher_ended"]
    return told


FAULTY: dict[str, Any] = {
    "no state": Faulty,
    "on the iterator": lambda *faults, **options: Faulty(*faults, state=True, **options),
    "on the data set": FaultyOwn,
}


@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}], ids=["new workers", "persistent"])
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("kind", FAULTY)
def test_a_worker_that_is_killed_is_replaced_where_it_was(kind: str, every: int, options: dict[str, Any]):
    """Nothing twice, nothing lost, the same random numbers; and states that are taken then are those of any run."""
    begin()
    calm = stream_loader(FAULTY[kind](20), num_workers=2, snapshot_every_n_steps=every, **options)
    expected, whole = stops(calm, 2)
    begin()
    kills = DiesAt(6, once=True), DiesAt(13, once=True)
    loader = stream_loader(FAULTY[kind](20, *kills), num_workers=2, snapshot_every_n_steps=every, **options)
    found, given = stops(loader, 2)
    assert loader.restarts == 2
    assert given == whole
    assert [in_order(stop.state) for stop in found] == [in_order(stop.state) for stop in expected]
    elsewhere()
    other = stream_loader(
        FAULTY[kind](20, DiesAt(16, once=True)), num_workers=2, snapshot_every_n_steps=every, **options
    )
    assert rest(other, expected[5], 2) == [whole[0][expected[5].batch :], *whole[1:]]
    assert other.restarts == 1


@pytest.mark.parametrize("shard", ["worker", "auto"])
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("kind", FAULTY)
def test_a_worker_of_a_stream_that_we_divide_is_replaced_where_it_was(kind: str, every: int, shard: str):
    def make(*faults: Fault) -> Any:
        dataset = FAULTY[kind](20, *faults, whole=True)
        return stream_loader(dataset, num_workers=2, snapshot_every_n_steps=every, shard=shard)

    begin()
    whole = all_epochs(make(), 1)
    begin()
    assert all_epochs(make(DiesAt(13, once=True)), 1) == whole
    begin()
    found, _ = stops(make(), 1)
    check_from(found[3::5], whole, lambda seed: make())


@pytest.mark.parametrize("way", ["stopped", "killed"])
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("kind", FAULTY)
def test_a_stream_that_was_divided_anew_goes_on_where_it_was(kind: str, every: int, way: str):
    """With other workers than it began with, and then stopped once more, or a worker killed."""

    def make(workers: int, *faults: Fault) -> Any:
        dataset = FAULTY[kind](48, *faults, whole=True)
        return stream_loader(dataset, num_workers=workers, snapshot_every_n_steps=every, shard="worker")

    begin()
    first = make(2)
    batches = iter(first)
    given = [next(batches) for _ in range(5)]
    state, faults = first.state_dict(), (DiesAt(30, once=True),) if way == "killed" else ()
    second = make(3, *faults)
    second.load_state_dict(through_json(state))
    for taken, batch in enumerate(second, 1):
        given.append(batch)
        if way == "stopped" and taken == 7:
            third = make(3)
            third.load_state_dict(through_json(second.state_dict()))
            given += third
            break
    assert numbers(given) == Counter(range(48))


# -- streams that are not the same again ---------------------------------------------------------


class Changing(Stream):
    """Gives other items, or fewer, each time that it is gone through, in whichever process."""

    def __init__(self, path: Path, change: str) -> None:
        super().__init__(20)
        self.path, self.change = path, change

    def numbers(self) -> list[int]:
        found = super().numbers()
        if not self.path.exists():
            return found
        return {"other": [number + 1 for number in found], "fewer": found[:2], "more": [-1, *found]}[self.change]


class ChangingAndDeadly(Changing):
    def item(self, number: int) -> Any:
        if number in (12, 13) and not self.path.exists():
            self.path.touch()
            DiesAt(0).strike()
        return super().item(number)


@pytest.mark.parametrize("change", ["other", "fewer", "more"])
@WORKERS
def test_a_stream_that_gives_something_else_after_a_stop_is_an_error(change: str, workers: int, tmp_path: Path):
    loader = stream_loader(Changing(tmp_path / "now", change), num_workers=workers)
    batches = iter(loader)
    for _ in range(2 * max(1, workers)):
        next(batches)
    state = loader.state_dict()
    (tmp_path / "now").touch()
    other = stream_loader(Changing(tmp_path / "now", change), num_workers=workers)
    other.load_state_dict(state)
    with pytest.raises(StreamDiffers, match="HF604"):
        list(other)


@pytest.mark.parametrize("change", ["other", "fewer", "more"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_stream_that_gives_something_else_after_a_crash_is_an_error(change: str, workers: int, tmp_path: Path):
    loader = stream_loader(ChangingAndDeadly(tmp_path / "now", change), num_workers=workers)
    with pytest.raises(StreamDiffers, match="HF604"):
        list(loader)


# -- items that fail -----------------------------------------------------------------------------

ITEM_POLICIES: dict[str, Any] = {
    "skip": "skip",
    "replace": Replace([-1.0]),
}


def bad(*items: int) -> tuple[Fault, ...]:
    return tuple(RaisesAt(item, lambda: ValueError("bad")) for item in items)


class Patient:
    """An iterator that stays where it is as long as an item raises."""

    def __init__(self, stream: Any) -> None:
        self.items, self.faults = Items(stream), stream.faults

    def __iter__(self) -> Patient:
        return self

    def __next__(self) -> Any:
        if self.items.place < len(self.items.numbers):
            for fault in self.faults:
                fault.meet(self.items.numbers[self.items.place])
        return next(self.items)


class Waiting(Faulty):
    def __iter__(self) -> Iterator[Any]:
        return Patient(self)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_that_passes_on_the_way_through_what_was_given_is_tried_again(workers: int):
    def make(*faults: Fault) -> Any:
        return stream_loader(Waiting(20, *faults), num_workers=workers, on_error=Retry(2, backoff=0))

    begin()
    whole = all_epochs(make(), 1)
    begin()
    found, _ = stops(make(), 1)
    check_from([found[6]], whole, lambda seed: make(RaisesAt(2, lambda: OSError("busy"), once=True)))


def test_an_error_that_passes_after_a_crash_is_tried_again():
    def make(*faults: Fault) -> Any:
        return stream_loader(Waiting(20, *faults), num_workers=1, on_error=Retry(2, backoff=0))

    class Second(RaisesAt):
        """Strikes when the item is asked for the second time, in whichever process."""

        def meet(self, index: Any) -> None:
            if index == self.index and not first.first() and second.first():
                self.strike()

    first, second = Once(), Once()
    begin()
    whole = all_epochs(make(), 1)
    begin()
    assert all_epochs(make(Second(2, OSError("busy")), DiesAt(12, once=True)), 1) == whole


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("otherwise", ["skip", "replace"])
def test_with_items_that_raise_and_are_tried_again(otherwise: str, workers: int):
    """Whose iterator goes on all the same, so that the next item is what is had."""

    def make(seed: int) -> Any:
        on_error = Retry(1, backoff=0) | ITEM_POLICIES[otherwise]
        return stream_loader(Faulty(20, *bad(3, 4, 9, 10)), num_workers=workers, on_error=on_error)

    begin()
    whole = all_epochs(make(HERE), 2)
    begin()
    found, given = stops(make(HERE), 1)
    assert given == whole[:1]
    check_from(found[3::3], whole, make)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("policy", ITEM_POLICIES)
@pytest.mark.parametrize(("kind", "every"), [("no state", 1), ("on the iterator", 1), ("on the iterator", 3)])
def test_with_items_that_raise(kind: str, every: int, policy: str, workers: int):
    def make(seed: int) -> Any:
        dataset, on_error = FAULTY[kind](20, *bad(3, 4, 9, 10)), ITEM_POLICIES[policy]
        return stream_loader(dataset, num_workers=workers, snapshot_every_n_steps=every, on_error=on_error)

    begin()
    whole = all_epochs(make(HERE), 2)
    begin()
    found, given = stops(make(HERE), 1)
    assert given == whole[:1]
    check_from(found if not workers else found[2::4], whole, make)


class Crooked(Stream):
    """Some items do not go into one batch with others."""

    def item(self, number: int) -> Any:
        return torch.zeros(2 if number in (5, 6, 14) else 3), torch.tensor(super().item(number))


class CrookedItems(Crooked):
    def __iter__(self) -> Iterator[Any]:
        return Items(self)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("kind", [Crooked, CrookedItems])
def test_with_items_that_fit_into_no_batch(kind: type[Crooked], every: int, workers: int):
    def make(seed: int) -> Any:
        options = {"batch_size": 4, "collate_fn": None, "on_error": "skip", "snapshot_every_n_steps": every}
        return stream_loader(kind(24), num_workers=workers, **options)

    def told(epochs: Any) -> Any:
        return [[[part.tolist() for part in batch] for batch in batches] for batches in epochs]

    begin()
    whole = told(all_epochs(make(HERE), 1))
    begin()
    found, _ = stops(make(HERE), 1)
    for number, stop in enumerate(found[:-1]):
        elsewhere(number)
        assert told(rest(make(ELSEWHERE), stop, 1)) == [whole[0][stop.batch :]], stop


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["no state", "on the iterator"])
def test_a_batch_whose_error_was_raised_is_behind_us(kind: str, workers: int):
    def outcomes(loader: Any, state: Any = None) -> tuple[list[Any], list[Any]]:
        if state is not None:
            loader.load_state_dict(through_json(state))
        found, states, batches = list[Any](), list[Any](), iter(loader)
        while True:
            try:
                found.append(next(batches))
            except StopIteration:
                return found, states
            except ValueError as error:
                found.append(str(error).split("\n")[0])
            states.append(loader.state_dict())

    def make() -> Any:
        return stream_loader(FAULTY[kind](20, *bad(3, 8)), num_workers=workers, snapshot_every_n_steps=2)

    begin()
    whole, states = outcomes(make())
    assert whole.count("bad") == 2
    for batch, state in enumerate(states, 1):
        elsewhere(batch)
        assert outcomes(make(), state)[0] == whole[batch:], state


# -- seeds of the data set's own -----------------------------------------------------------------


class Permuted(Stream):
    """Shuffles by the seed that torch tells workers."""

    def numbers(self) -> list[int]:
        info = get_worker_info()
        seed = info.seed if info is not None else torch.initial_seed()
        return torch.randperm(self.length, generator=torch.Generator().manual_seed(seed)).tolist()


@WORKERS
def test_with_an_order_from_the_seed_of_the_worker(workers: int):
    check_everywhere(lambda seed: stream_loader(Permuted(4), num_workers=workers), every=4)


class SeededByInit(Stream):
    seed = 0

    def numbers(self) -> list[int]:
        return torch.randperm(self.length, generator=torch.Generator().manual_seed(self.seed)).tolist()


def note_seed(seat: int) -> None:
    info = get_worker_info()
    assert info is not None
    info.dataset.seed = info.seed


def by_init(seed: int, **options: Any) -> Any:
    return stream_loader(SeededByInit(), num_workers=2, worker_init_fn=note_seed, **options)


@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}], ids=["new workers", "persistent"])
def test_with_an_order_from_the_seed_that_worker_init_fn_sees(options: dict[str, Any]):
    begin()
    loader = by_init(HERE, **options)
    batches = iter(loader)
    given, state = [next(batches), next(batches)], loader.state_dict()
    whole = [*given, *batches]
    close(loader)
    check_from([Stop(0, 2, state)], [whole], lambda seed: by_init(seed, **options))


def test_to_ask_for_the_state_does_not_change_the_seed_that_worker_init_fn_sees():
    begin()
    whole = list(by_init(HERE))
    begin()
    loader = by_init(HERE)
    loader.state_dict()
    assert list(loader) == whole


def pipe(seed: int, workers: int) -> Any:
    made = IterableWrapper([[number] for number in range(12)]).shuffle().sharding_filter()
    return stream_loader(made, num_workers=workers)


@WORKERS
def test_with_a_data_pipe_that_shuffles(workers: int):
    begin()
    loader, found = pipe(HERE, workers), list[Stop]()
    batches, whole = iter(loader), list[Any]()
    for batch in batches:
        whole.append(batch)
        found.append(Stop(0, len(whole), loader.state_dict()))
    check_from(found, [whole], lambda seed: pipe(seed, workers))


@pytest.mark.parametrize("epochs", [0, 1])
@WORKERS
def test_with_a_data_pipe_that_shuffles_stopped_between_epochs(workers: int, epochs: int):
    begin()
    loader = pipe(HERE, workers)
    all_epochs(loader, epochs)
    state = loader.state_dict()
    whole = list(loader)
    assert state["epoch"] == epochs
    elsewhere()
    other = pipe(ELSEWHERE, workers)
    other.load_state_dict(state)
    assert list(other) == whole


# -- anything ------------------------------------------------------------------------------------


@some.composite
def runs(draw: some.DrawFn) -> dict[str, Any]:
    return {
        "kind": draw(some.sampled_from(sorted(STREAMS))),
        "length": draw(some.integers(1, 50)),
        "options": {
            "batch_size": draw(some.integers(1, 5)),
            "snapshot_every_n_steps": draw(some.integers(0, 4)),
            "drop_last": draw(some.booleans()),
            "num_workers": draw(some.integers(0, 2)),
        },
        "parts": draw(some.lists(some.integers(0, 30), min_size=1, max_size=4)),
    }


def check_run(run: dict[str, Any]) -> None:
    """Batches of all loaders one after the other are those of one."""

    def make() -> Any:
        return stream_loader(STREAMS[run["kind"]](run["length"]), allow_empty=True, **run["options"])

    begin()
    whole = [batch for epoch in all_epochs(make(), 4) for batch in epoch]
    begin()
    state, given = None, list[Any]()
    for number, count in enumerate(run["parts"]):
        loader = make()
        if state is not None:
            loader.load_state_dict(through_json(state))
        batches = iter(loader)
        for _ in range(count):
            batch = next(batches, None)
            if batch is None:
                batches = iter(loader)
            else:
                given.append(batch)
        state = loader.state_dict()
        elsewhere(number)
    assert given[: len(whole)] == whole[: len(given)]


@settings(deadline=None, max_examples=40)
@given(runs())
def test_any_run_in_any_parts(run: dict[str, Any]):
    check_run({**run, "options": {**run["options"], "num_workers": 0}})


@settings(deadline=None, max_examples=8)
@given(runs())
def test_any_run_in_any_parts_by_workers(run: dict[str, Any]):
    check_run(run)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(deadline=None, max_examples=300)
@given(runs())
def test_very_many_runs_in_any_parts_by_workers(run: dict[str, Any]):
    check_run(run)
