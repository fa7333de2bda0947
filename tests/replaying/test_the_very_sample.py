"""A sample that is seen again is, bit for bit, the one that was delivered."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from noise import AllAtOnce, Failing, Noisy, loader, seeding

from holdfast import DistributedSampler
from holdfast.replaying.portrait import digest
from holdfast.replaying.running import in_a_worker
from holdfast.replaying.stage import Seen, Stage
from holdfast.replaying.wanted import Place, Wanted, in_batch, in_epoch, of_fault
from holdfast.state.moment import Moment, Origin
from holdfast.targets.mistake import Mistake
from holdfast.targets.target import Target

Epochs = list[list[list[Any]]]


@pytest.fixture(autouse=True)
def _random_state_as_it_was():
    before = torch.get_rng_state(), random.getstate(), numpy.random.get_state()
    yield
    torch.set_rng_state(before[0])
    random.setstate(before[1])
    numpy.random.set_state(before[2])


def delivered(made: Any, epochs: int) -> Epochs:
    return [list(made) for _ in range(epochs)]


def seen(made: Any, wanted: Wanted) -> Seen:
    """In this process: `test_running` does it in workers."""
    from torch.utils.data._utils import worker as torch_worker

    stage = Stage(made.dataset, wanted, made.worker_init_fn, made.num_workers, made._auto_collation)
    try:
        return stage.seen()
    finally:
        torch_worker._worker_info = None


def check(made: Any, epochs: Epochs, wanted_of: Any) -> None:
    """Of every epoch, some samples: the first, one in the middle, and the last of a batch."""
    for epoch, batches in enumerate(epochs):
        for number in (0, len(batches) - 1):
            for sample in (batches[number][0], batches[number][2], batches[number][-1]):
                wanted = wanted_of(sample["i"], epoch, number)
                assert wanted.moment.batch == number
                assert seen(made, wanted).digest == digest(sample)


@pytest.mark.parametrize(
    "options",
    [{}, {"num_workers": 0}, {"shuffle": False}, {"dataset": AllAtOnce()}, {"persistent_workers": True}],
    ids=lambda options: " ".join(options),
)
def test_an_epoch_is_known_by_the_seed_of_the_program(options):
    torch.manual_seed(11)
    epochs = delivered(loader(**options), 3)
    made = loader(**{**options, "persistent_workers": False})

    def wanted(index: int, epoch: int, batch: int) -> Wanted:
        torch.manual_seed(11)
        return in_epoch(index, epoch, None, made, 0)

    check(made, epochs, wanted)


@pytest.mark.parametrize("options", [{}, {"num_workers": 0}, {"generator": 5}], ids=str)
def test_a_place_that_was_told_needs_no_seed(options):
    given = {**options, "generator": torch.Generator().manual_seed(5)} if "generator" in options else options
    torch.rand(3)  # whatever the generators were at
    made = loader(**given)
    moments, epochs = [], []
    for _ in range(3):
        iterator = iter(made)
        moments.append(made._run.progress.moments())
        epochs.append(list(iterator))
    check(made, epochs, lambda index, epoch, batch: in_batch(index, moments[epoch].at(batch), made, 0))


def test_a_run_that_was_resumed_is_no_other():
    torch.manual_seed(3)
    whole = delivered(loader(), 2)
    torch.manual_seed(3)
    first = loader()
    list(first)
    batches = iter(first)
    next(batches)
    next(batches)
    state = json.loads(json.dumps(first.state_dict()))
    batches._shutdown_workers()
    torch.manual_seed(99)
    second = loader(num_workers=1)
    second.load_state_dict(state)
    rest = list(second)
    moments = second._run.progress.moments()
    for number, batch in enumerate(rest, 2):
        for sample in batch:
            wanted = in_batch(sample["i"], moments.at(number), second, 0)
            assert seen(second, wanted).digest == digest(sample)
    assert [[digest(sample) for sample in batch] for batch in rest] == [
        [digest(sample) for sample in batch] for batch in whole[1][2:]
    ]


def test_seeds_that_a_worker_init_fn_sets_have_their_way():
    made = loader(worker_init_fn=seeding, num_workers=1)
    [batches] = delivered(made, 1)
    check(made, [batches], lambda index, epoch, batch: in_batch(index, made._run.progress.moments().at(batch), made, 0))


def test_ranks_count_their_batches_as_one():
    def of_rank(rank: int) -> Any:
        sampler = DistributedSampler(Noisy(), num_replicas=2, rank=rank, seed=4)
        return loader(shuffle=None, sampler=sampler)

    made = of_rank(1)
    [batches] = delivered(made, 1)
    moment = made._run.progress.moments().at(1)
    assert moment.number == 3
    again = of_rank(1)
    for sample in batches[1]:
        assert seen(again, in_batch(sample["i"], Moment.of(str(moment)), again, 0)).digest == digest(sample)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_fault_log_tells_all_that_is_needed(tmp_path: Path, num_workers):
    log = tmp_path / "faults.jsonl"
    torch.manual_seed(1)
    undisturbed = [sample for batch in loader(num_workers=num_workers) for sample in batch]
    torch.manual_seed(1)
    list(loader(Failing(), num_workers=num_workers, on_error="skip", fault_log=log))
    wanted = of_fault(str(log))
    assert wanted.index == 7
    [sample] = [sample for sample in undisturbed if sample["i"] == 7]
    assert seen(loader(num_workers=num_workers), wanted).digest == digest(sample)
    assert seen(loader(Failing()), wanted).error == f"ValueError: bad after {sample['p']}"


def test_what_was_known_to_be_bad_and_never_loaded_has_no_random_numbers_to_show(tmp_path: Path):
    log = tmp_path / "faults.jsonl"
    made = loader(Failing(), on_error="skip", fault_log=log)
    for _ in range(2):
        list(made)
    assert [json.loads(line)["action"] for line in log.read_text().splitlines()] == ["skipped", "known bad"]
    assert of_fault(str(log)) == of_fault(f"{log}:1")
    with pytest.raises(Mistake, match="known to be bad, and not loaded"):
        of_fault(f"{log}:2")


def test_the_error_tells_the_place():
    torch.manual_seed(1)
    with pytest.raises(ValueError, match="bad after") as caught:
        list(loader(Failing()))
    [line] = [line for note in caught.value.__notes__ for line in note.splitlines() if line.startswith("again: ")]
    command, _, at = line.partition(" --at ")
    assert command == "again: holdfast replay TARGET 7"
    [error] = [str(caught.value)]
    made = loader(Failing())
    assert seen(made, in_batch(7, Moment.of(at), made, 0)).error == f"ValueError: {error}"


def test_in_a_worker_it_is_the_same():
    torch.manual_seed(11)
    made = loader()
    [batches] = delivered(made, 1)
    sample, moments = batches[2][3], made._run.progress.moments()
    found = in_a_worker(Stage(made.dataset, in_batch(sample["i"], moments.at(2), made, 0), None, 2, True), made)
    assert isinstance(found, Seen)
    assert found.digest == digest(sample)


@pytest.mark.parametrize(
    "moment",
    [
        Moment(0, 0, 0, 1, Origin(0)),
        Moment(2, 118, 118, 8214565720323847, Origin(93842)),
        Moment(2, 118, 947, 5, Origin(0, 3)),
        Moment(1, 2, 2, -7, Origin(-9, 1)),
    ],
    ids=str,
)
def test_a_moment_survives_being_written_down(moment):
    assert Moment.of(str(moment)) == moment


@pytest.mark.parametrize("text", ["", "1", "1/2", "1/2/x", "1/2/3/4/5", "a/2/3"])
def test_what_is_no_moment_is_refused(text):
    with pytest.raises(ValueError, match="epoch/batch/seed"):
        Moment.of(text)


def test_nothing_but_an_index_is_not_of_a_run():
    from holdfast.replaying.wanted import sought

    wanted = sought(Target("x", Noisy()), "3", Place())
    assert wanted.moment is None
    assert wanted.seed == 0
