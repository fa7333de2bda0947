"""A run over a map-style data set that was stopped anywhere goes on with the very next batch, bit by bit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import (
    ELSEWHERE,
    HERE,
    LENGTH,
    SAMPLERS,
    Augmented,
    Stop,
    all_epochs,
    begin,
    check_everywhere,
    check_from,
    close,
    drawn,
    drawn_by_thread,
    elsewhere,
    left_of,
    map_loader,
    start_epoch,
    stops,
    through_json,
)
from hypothesis import given, settings
from hypothesis import strategies as some

from holdfast import Replace, Retry, Skip
from holdfast.testing import DiesAt, Faulty, RaisesAt

STARTS = ("zygote", "standby", "fork", "spawn", "forkserver")


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_with_any_sampler(sampler: str):
    check_everywhere(lambda seed: map_loader(seed, sampler))


# -- workers -------------------------------------------------------------------------------------


def of_the_run(state: dict[str, Any]) -> dict[str, Any]:
    """Without what tells of the workers only."""
    workers = ("num_workers", "_snapshot", "dataset_state", "fetcher_state")
    return {name: value for name, value in state.items() if name not in workers}


@pytest.mark.parametrize(
    ("sampler", "options"),
    [("shuffle", {}), ("shuffle", {"persistent_workers": True}), ("lazy", {}), ("state on its iterator", {})],
)
def test_the_state_is_the_same_whoever_loads(sampler: str, options: dict[str, Any]):
    begin()
    alone = [stop._replace(state=of_the_run(stop.state)) for stop in stops(map_loader(HERE, sampler))[0]]
    for workers in (1, 2, 4):
        begin()
        found = stops(map_loader(HERE, sampler, num_workers=workers, **options))[0]
        assert [stop._replace(state=of_the_run(stop.state)) for stop in found] == alone


@pytest.mark.parametrize("options", [{}, {"persistent_workers": True}], ids=["new workers", "persistent"])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_with_any_number_of_workers_on_either_side(workers: int, options: dict[str, Any]):
    begin()
    whole = all_epochs(map_loader(HERE))
    begin()
    alone, _ = stops(map_loader(HERE))
    begin()
    found, given = stops(map_loader(HERE, num_workers=workers, **options))
    assert given == whole[:-1]
    some_of = slice(None) if workers == 2 and options else slice(workers, None, 6)
    check_from(alone[some_of], whole, lambda seed: map_loader(seed, num_workers=workers, **options))
    check_from(found, whole, map_loader)
    check_from(found[4:6], whole, lambda seed: map_loader(seed, num_workers=5 - workers))


def test_with_any_number_of_threads():
    def make(seed: int, workers: int = 2) -> Any:
        return map_loader(seed, dataset=Augmented(draw=drawn_by_thread), workers="thread", num_workers=workers)

    check_everywhere(make, lambda seed: make(seed, 1 + seed % 4))


@pytest.mark.parametrize("start", STARTS)
def test_with_workers_started_in_any_way(start: str):
    begin()
    whole = all_epochs(map_loader(HERE), 1)
    begin()
    found, _ = stops(map_loader(HERE), 1)
    check_from([found[3]], whole, lambda seed: map_loader(seed, num_workers=1, start=start))


def test_with_workers_that_are_recycled():
    check_everywhere(lambda seed: map_loader(seed, num_workers=1, recycle_after=1), map_loader, every=4)


@pytest.mark.slow
def test_in_a_process_of_its_own(tmp_path: Path):
    begin()
    whole = all_epochs(map_loader(HERE, "lazy"))
    begin()
    found, _ = stops(map_loader(HERE, "lazy", num_workers=2))
    program = """
import json, sys
sys.path.insert(0, sys.argv[1])
from datasets import Stop, elsewhere, map_loader, rest

if __name__ == "__main__":
    elsewhere()
    print(json.dumps([rest(map_loader(5, "lazy"), Stop(*stop)) for stop in json.load(sys.stdin)]))
"""
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, str(tmp_path / "program.py"), str(Path(__file__).parent)]
    told = subprocess.run(command, input=json.dumps(found), stdout=subprocess.PIPE, text=True, check=True).stdout
    assert json.loads(told) == [left_of(whole, stop) for stop in found]


# -- order ---------------------------------------------------------------------------------------


class Late(Augmented):
    """Sample 0 comes after all others of its epoch that are loaded meanwhile: it waits for a file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def __getitem__(self, index: int) -> list[float]:
        if index == 0:
            while not self.path.exists():
                pass
        if index == 5:
            self.path.touch()
        return super().__getitem__(index)


@pytest.mark.parametrize("workers", [0, 2])
def test_when_batches_come_out_of_order_each_is_given_once(workers: int, tmp_path: Path):
    """Of two workers the first waits for the second, so that batch 0 is behind batch 2 for certain."""

    def make(seed: int) -> Any:
        dataset = Late(tmp_path / "now")
        return map_loader(seed, "sequential", dataset, batch_size=2, num_workers=2, in_order=False, prefetch_factor=1)

    (tmp_path / "now").touch()
    begin()
    whole = all_epochs(map_loader(HERE, "sequential", batch_size=2), 2)
    (tmp_path / "now").unlink()
    begin()
    loader, given = make(HERE), list[Any]()
    for batch in loader:
        given.append(batch)
        state = loader.state_dict()
        elsewhere()
        other = map_loader(ELSEWHERE, "sequential", batch_size=2, num_workers=workers)
        other.load_state_dict(through_json(state))
        assert sorted([*given, *other]) == sorted(whole[0])
        assert list(other) == whole[1]
        if len(given) == 1:
            assert (state["batch"], state["done"]) == (0, [1])
    assert sorted(given) == sorted(whole[0])


# -- faults --------------------------------------------------------------------------------------


def test_with_workers_that_are_killed():
    begin()
    whole = all_epochs(map_loader(HERE))
    begin()
    kill = DiesAt(2, once=True), DiesAt(7, once=True)
    loader = map_loader(HERE, dataset=Faulty(Augmented(), *kill), num_workers=2)
    found, given = stops(loader)
    assert len(loader.faults.filter(kind="death")) == 2
    assert given == whole[:-1]

    def make(seed: int) -> Any:
        return map_loader(seed, dataset=Faulty(Augmented(), DiesAt(seed % LENGTH, once=True)), num_workers=2)

    check_from(found[::3], whole, make)


def spoiled(*faults: Any, length: int = 12, bad: Any = (1, 2, 6)) -> Faulty:
    return Faulty(Augmented(length), *(RaisesAt(index, lambda: ValueError("bad")) for index in bad), *faults)


POLICIES: dict[str, Callable[[], Any]] = {
    "skip": lambda: "skip",
    "skip, no refill": lambda: Skip(refill=False),
    "replace": lambda: "replace",
    "replace by value": lambda: Replace([-1.0]),
    "retry, replace by value": lambda: Retry(1, backoff=0) | Replace([-1.0]),
    "skip some, replace others": lambda: Skip(on=OSError) | Replace([-1.0]),
    "a function": lambda: lambda fault: Replace([float(fault.index)]),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_with_bad_samples(policy: str):
    check_everywhere(lambda seed: map_loader(seed, dataset=spoiled(), on_error=POLICIES[policy]()))


@pytest.mark.parametrize("policy", POLICIES)
def test_with_bad_samples_and_workers_of_which_one_is_killed(policy: str):
    """The deadly one counts as bad, and so did those that were met ahead of the batch at which it was stopped."""
    options = {"on_error": POLICIES[policy](), "num_workers": 2}
    begin()
    whole = all_epochs(map_loader(HERE, dataset=spoiled(DiesAt(8)), **options), 2)
    begin()
    found, given = stops(map_loader(HERE, dataset=spoiled(DiesAt(8), DiesAt(3, once=True)), **options), 1)
    assert given == whole[:1]
    check_from(found[1::2], whole, lambda seed: map_loader(seed, dataset=spoiled(DiesAt(8)), **options))


NEIGHBOURLY = ("lazy", "batches", "state on itself", "state on its iterator", "our ranks", "torch's ranks", "weighted")
LISTS = "batches of sequential as samples"


class ByLists(Augmented):
    """Is asked for a list, which is one index."""

    def __getitem__(self, index: Any) -> Any:
        if index[0] % 5 > 1:
            raise ValueError("bad")
        return [self.draw(), index]


def with_neighbours(seed: int, sampler: str) -> Any:
    """Most samples are bad, and batches small, so that it matters how many neighbours are known."""
    dataset = ByLists(24) if sampler == LISTS else spoiled(length=24, bad=[n for n in range(24) if n % 5 > 1])
    size = {} if sampler in ("batches", LISTS) else {"batch_size": 1}
    return map_loader(seed, sampler, dataset, on_error="skip", **size)


@pytest.mark.parametrize("sampler", [*NEIGHBOURLY, LISTS])
def test_where_neighbours_take_the_place_of_bad_samples(sampler: str):
    """Batches before the stop are among them."""
    begin()
    whole = all_epochs(with_neighbours(HERE, sampler), 2)
    begin()
    found, given = stops(with_neighbours(HERE, sampler), 1)
    assert given == whole[:1]
    check_from(found[::3], whole, lambda seed: with_neighbours(seed, sampler))


@pytest.mark.parametrize("sampler", [*NEIGHBOURLY, LISTS])
def test_where_neighbours_take_the_place_of_bad_samples_and_it_is_stopped_at_each_batch(sampler: str):
    begin()
    whole = all_epochs(with_neighbours(HERE, sampler), 2)
    begin()
    assert one_by_one(lambda seed: with_neighbours(seed, sampler), 2) == whole


def test_a_batch_whose_error_was_raised_is_behind_us():
    def given(loader: Any, stop_at: int) -> Any:
        """Outcomes of an epoch, and the state behind this many."""
        found, state, batches = [], None, iter(loader)
        while True:
            try:
                found.append(next(batches))
            except StopIteration:
                return found, state
            except ValueError as error:
                found.append(str(error))
            if len(found) == stop_at:
                state = loader.state_dict()

    begin()
    whole, _ = given(map_loader(HERE, dataset=spoiled()), 0)
    assert whole.count("bad") >= 1
    for workers in (0, 2):
        for stop_at in range(1, len(whole) + 1):
            begin()
            _, state = given(map_loader(HERE, dataset=spoiled(), num_workers=workers), stop_at)
            elsewhere()
            loader = map_loader(ELSEWHERE, dataset=spoiled(), num_workers=2 - workers)
            loader.load_state_dict(through_json(state))
            assert given(loader, 0)[0] == whole[stop_at:]


def test_a_loader_that_is_rewound_counts_each_fault_once():
    begin()
    loader, states = map_loader(HERE, dataset=spoiled(), on_error="skip"), list[Any]()
    for _ in loader:
        states.append(loader.state_dict())
    loader.load_state_dict(states[1])
    assert [loader.state_dict() for _ in loader] == states[2:]


# -- again and again -----------------------------------------------------------------------------


def one_by_one(make: Callable[[int], Any], count: int) -> list[list[Any]]:
    """As many loaders as there are batches: each gives one, and is stopped behind it."""
    epochs, state, seed = [], None, HERE
    for epoch in range(count):
        batches: list[Any] = []
        while len(batches) < 100:
            loader, seed = make(seed), seed + 1
            if state is not None:
                loader.load_state_dict(through_json(state))
            batch = next(start_epoch(loader, epoch), None)
            state = loader.state_dict()
            close(loader)
            if batch is None:
                break
            batches.append(batch)
            elsewhere(seed)
        epochs.append(batches)
    return epochs


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_stopped_at_each_batch(sampler: str):
    begin()
    whole = all_epochs(map_loader(HERE, sampler), 2)
    begin()
    assert one_by_one(lambda seed: map_loader(seed, sampler), 2) == whole


def test_stopped_at_each_batch_with_another_number_of_workers_each_time():
    begin()
    whole = all_epochs(map_loader(HERE), 3)
    begin()
    assert one_by_one(lambda seed: map_loader(seed, num_workers=seed % 3), 3) == whole


# -- a few batches back --------------------------------------------------------------------------


RECENTLY = ("shuffle", "lazy", "state on itself", "state on its iterator")


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("sampler", [*RECENTLY, "our ranks"])
def test_the_state_of_a_few_batches_ago(sampler: str, workers: int):
    """By how many were count then, or how many fewer; up to eight."""
    dataset = Augmented(40)
    begin()
    whole = all_epochs(map_loader(HERE, sampler, dataset), 2)
    begin()
    loader, states = map_loader(HERE, sampler, dataset, num_workers=workers), list[Any]()
    batches = start_epoch(loader, 0)
    for count in range(len(whole[0]) + 1):
        states.append(loader.state_dict())
        for back in range(min(count, 8) + 1):
            assert loader.state_dict(at=count - back) == states[count - back]
            if back:
                assert loader.state_dict(at=-back) == states[count - back]
        for at in (count + 1, -count - 1, count - 9 if count > 8 else -9):
            with pytest.raises(ValueError, match=r"at should be .* but got at="):
                loader.state_dict(at=at)
        next(batches, None)
    check_from(
        [Stop(0, count, state) for count, state in enumerate(states)][::4],
        whole,
        lambda seed: map_loader(seed, sampler, dataset),
    )


# -- anything ------------------------------------------------------------------------------------


@some.composite
def runs(draw: some.DrawFn) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """A loader, and how many batches each of several loaders gives, with how many workers."""
    length = draw(some.integers(1, 60))
    names = sorted(set(SAMPLERS) - {"torch's ranks", "our ranks", "random, some", "batches"})
    options = {"length": length, "sampler": draw(some.sampled_from(names)), "size": draw(some.integers(1, 9))}
    return options, draw(some.lists(some.tuples(some.integers(0, 30), some.integers(0, 2)), min_size=1, max_size=4))


def made(seed: int, options: dict[str, Any], **more: Any) -> Any:
    own = {"batch_size": options["size"]}
    if "batch_size" in SAMPLERS[options["sampler"]](1, 0) or "batch_sampler" in SAMPLERS[options["sampler"]](1, 0):
        own = {}
    return map_loader(seed, options["sampler"], Augmented(options["length"]), **own, **more)


def check_run(options: dict[str, Any], parts: list[tuple[int, int]]) -> None:
    """Batches of all loaders one after the other are those of one."""
    begin()
    whole = [batch for epoch in all_epochs(made(HERE, options), 3) for batch in epoch]
    begin()
    state, given = None, list[Any]()
    for number, (count, workers) in enumerate(parts):
        loader = made(HERE + number, options, num_workers=workers)
        if state is not None:
            loader.load_state_dict(through_json(state))
        batches = iter(loader)
        for _ in range(count):
            for _ in range(2):
                batch = next(batches, None)
                if batch is not None:
                    break
                batches = iter(loader)
            if batch is not None:
                given.append(batch)
            drawn()
        state = loader.state_dict()
        elsewhere(number)
    assert given[: len(whole)] == whole[: len(given)]


@settings(deadline=None, max_examples=30)
@given(runs())
def test_any_run_in_any_parts(run: Any):
    options, parts = run
    check_run(options, [(count, 0) for count, _ in parts])


@settings(deadline=None, max_examples=8)
@given(runs())
def test_any_run_in_any_parts_by_workers(run: Any):
    check_run(*run)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@settings(deadline=None, max_examples=300)
@given(runs())
def test_very_many_runs_in_any_parts_by_workers(run: Any):
    check_run(*run)
