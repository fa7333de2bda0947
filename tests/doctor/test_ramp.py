"""The ramp names what makes samples differ, die, hang or not come, and leaves the data set as it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import defects
import pytest
import torch
from torch.utils.data import DataLoader

import holdfast
from holdfast.audit.finding import Severity
from holdfast.doctor import ramp as ramps
from holdfast.doctor.bounds import growth
from holdfast.doctor.ramp import Budget, Ramp, ramp
from holdfast.doctor.symptom import Symptom
from holdfast.targets.mistake import Mistake
from holdfast.targets.target import Target

ERROR, WARNING, NOTE = Severity
Climb = Callable[..., Ramp]


@pytest.fixture
def climb(monkeypatch: pytest.MonkeyPatch) -> Climb:
    monkeypatch.setattr(ramps, "MEASURE", 0.3)

    def climb(kind: Any, workers: tuple[int, ...] = (0, 2), budget: float = 30, **options: Any) -> Ramp:
        loader = defects.in_batches(kind, **options)
        with closed(loader.dataset):
            return climbed(loader, workers, budget)

    return climb


@contextmanager
def closed(dataset: Any) -> Iterator[None]:
    """Afterwards, if it has a file that is open."""
    with getattr(dataset, "file", None) or nullcontext():
        yield


def climbed(loader: DataLoader[Any], workers: tuple[int, ...] = (0, 2), budget: float = 30) -> Ramp:
    return ramp(Target("it", loader.dataset, loader), workers, Budget(budget), lambda what: None)


def only(found: Ramp) -> Symptom:
    assert len(found.symptoms) == 1, found.symptoms
    return found.symptoms[0]


def test_a_healthy_data_set_is_the_same_with_any_number_of_workers(climb: Climb):
    found = climb(defects.Healthy, workers=(0, 1, 2))
    assert (found.symptoms, found.compared, found.unlooked) == ((), defects.LENGTH, ())
    assert [step.workers for step in found.steps] == [0, 1, 2]
    assert all(step.rate > 0 and step.uss > 0 and step.descriptors > 0 for step in found.steps)


def test_a_healthy_loader_of_ours_is_tried_with_its_own_start(climb: Climb):
    found = climbed(holdfast.DataLoader(defects.Healthy(), batch_size=4, num_workers=2, shuffle=True))
    assert (found.symptoms, found.compared) == ((), defects.LENGTH)


def test_a_loader_of_ours_that_has_to_fork_is_tried_as_a_fork(climb: Climb):
    dataset = defects.SharedFile()
    with closed(dataset):
        symptom = only(climbed(holdfast.DataLoader(dataset, batch_size=4, num_workers=2)))
    assert (symptom.check, symptom.where) == ("HD03", "dataset.file")


def test_workers_that_are_threads_are_tried_as_threads(climb: Climb):
    found = climbed(holdfast.DataLoader(defects.Whole(), batch_size=4, num_workers=2, workers="thread"))
    assert (found.symptoms, found.compared) == ((), defects.LENGTH)


def test_samples_without_batches_are_compared_too(climb: Climb):
    found = climbed(DataLoader(defects.Base(), batch_size=None, num_workers=2))
    assert (found.symptoms, found.compared) == ((), defects.LENGTH)


def test_a_data_set_without_a_loader_is_tried_from_all_over_it(climb: Climb):
    found = ramp(Target("it", defects.Healthy()), (0, 2), Budget(30), lambda what: None)
    assert (found.symptoms, found.compared) == ((), defects.LENGTH)


DEFECTS = [
    # data set, check, severity, where, what is seen
    (defects.Clock, "HD10", WARNING, "sample['id']", "in two processes: sample 0['id']: '"),
    (defects.OwnGenerator, "HD08", ERROR, "dataset.rng", "196 of 200 samples differ with 2 workers"),
    (defects.Remembers, "HD09", ERROR, "dataset.position", "dataset.position: 0 -> 32; twice in one process"),
    (defects.Counts, "HD09", WARNING, "defects.COUNT", "defects.COUNT: 0 -> 32"),
    (defects.Caches, "HD09", NOTE, "dataset.cache", "0 -> 32 entries"),
    (defects.SharedFile, "HD03", ERROR, "dataset.file", "samples differ with 2 workers"),
    (defects.Stops, "HD20", ERROR, "dataset index 7", "defects.py:"),
    (defects.Raises, "F20", ERROR, "/data/5.jpg (dataset[5])", "so does 70"),
    (defects.RaisesAmongRandom, "F20", ERROR, "/data/5.jpg (dataset[5])", "so does 70"),
    (defects.Nothing, "HF303", ERROR, "dataset index 9", ""),
    (defects.Unequal, "HF304", ERROR, "dataset index 8; dataset index 11", "stack expects"),
    (defects.Crashes, "HD16", ERROR, "dataset[6]", "Segmentation fault; in "),
    (defects.CrashesInWorkers, "HD16", ERROR, "dataset index 6", "without workers it does not happen"),
    (defects.Empty, "HF401", ERROR, "", ""),
    (defects.Stream, "HD25", ERROR, "dataset.__iter__", "64 of the 64 items"),
    (defects.Once, "HD26", ERROR, "dataset.__iter__", "the same object each time"),
    (defects.Promises, "HD26", WARNING, "dataset.__len__", ""),
]


@pytest.mark.parametrize(
    ("kind", "check", "severity", "where", "seen"), DEFECTS, ids=lambda one: getattr(one, "__name__", "")
)
def test_a_defect_is_named_with_its_path_and_its_evidence(
    climb: Climb, kind: Any, check: str, severity: Severity, where: str, seen: str
):
    symptom = only(climb(kind))
    assert (symptom.check, symptom.severity, symptom.where) == (check, severity, where)
    assert seen in symptom.evidence


def test_random_samples_that_follow_those_which_end_workers_count_as_the_same(climb: Climb):
    symptom = only(climb(defects.CrashesAmongRandom, workers=(0, 1, 2), batch_size=2))
    assert symptom.check == "HD16"
    assert "so does 5" in symptom.evidence


@pytest.mark.parametrize(
    ("kind", "seen"), [(defects.SharedText, "raises ValueError"), (defects.SharedShapes, "cannot be one batch")]
)
def test_a_shared_file_that_only_makes_workers_fail_is_still_named(climb: Climb, kind: type, seen: str):
    symptom = only(climb(kind))
    assert (symptom.check, symptom.where) == ("HD03", "dataset.file")
    assert seen in symptom.evidence


def test_a_stream_that_is_divided_is_left_alone(climb: Climb):
    found = climb(defects.Sharded)
    assert (found.symptoms, found.compared) == ((), 64)


def test_a_result_that_cannot_be_pickled_is_named_within_its_batch(climb: Climb):
    symptom = only(climb(defects.Unsendable, collate_fn=defects.as_they_are))
    assert (symptom.check, symptom.where) == ("HD19", "batch[0]")


@pytest.mark.slow
def test_what_depends_on_the_interpreter_is_told_apart_from_chance(climb: Climb):
    symptom = only(climbed(holdfast.DataLoader(defects.Hashes(), batch_size=4, num_workers=2)))
    assert (symptom.check, symptom.severity) == ("HD10", WARNING)
    assert "none does where workers are forks" in symptom.evidence


def test_a_worker_init_fn_that_seeds_torch_is_only_noted(climb: Climb):
    symptom = only(climb(defects.Healthy, worker_init_fn=defects.seeds_torch))
    assert (symptom.severity, symptom.where) == (NOTE, "loader.worker_init_fn")


def test_a_sample_that_hangs_is_named_with_its_line_and_the_rest_is_tried(climb: Climb):
    found = climb(defects.Hangs, budget=12)
    symptom = only(found)
    assert (symptom.check, symptom.where) == ("HD17", "dataset[4]")
    assert "waits for a lock" in symptom.evidence
    assert "defects.py:" in symptom.evidence
    assert found.compared >= defects.LENGTH // 2


def test_a_sample_that_hangs_in_workers_alone_is_told_in_the_words_of_the_loader(climb: Climb):
    symptom = only(climb(defects.HangsInWorkers, budget=12))
    assert (symptom.check, symptom.where) == ("HD17", "dataset index 4")
    assert "made no progress" in symptom.what
    assert "without workers it does not happen" in symptom.evidence


@pytest.mark.slow
def test_memory_and_descriptors_that_leak_are_measured(climb: Climb, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ramps, "MEASURE", 1.6)
    leak, opened = climb(defects.Leaks), climb(defects.LeavesOpen)
    assert [symptom.check for symptom in growth(leak.steps, 1 << 30, leak.grown)] == ["HD15"]
    assert [symptom.check for symptom in growth(opened.steps, 1 << 30, opened.grown)] == ["HD13"]
    assert (leak.grown, opened.grown) == (("defects.LEAK",), ("defects.OPENED",))


def test_openmp_in_the_process_of_the_doctor_does_not_hang_what_it_forks(climb: Climb):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    torch.ones(1000, 1000).sin().sum()
    torch.set_num_threads(before)
    found = climb(defects.Computes)
    assert (found.symptoms, found.compared) == ((), defects.LENGTH)


def slow_to_begin(samples: list[Any]) -> Any:
    if 0 in (index for _, index in samples):
        time.sleep(0.3)
    return samples


def test_what_the_first_batch_takes_to_begin_with_is_no_share_of_the_time(climb: Climb):
    found = climb(defects.Base, workers=(0,), collate_fn=slow_to_begin)
    assert all(0 <= step.collating <= 1 for step in found.steps)
    assert found.steps


def test_slow_samples_do_not_take_longer_than_the_budget(climb: Climb):
    began = time.monotonic()
    found = climb(defects.Slow, workers=(0, 1, 2), budget=3)
    assert time.monotonic() - began < 8
    assert not found.symptoms
    assert found.unlooked


def test_the_data_set_is_as_it_was(climb: Climb):
    loader = defects.in_batches(defects.SharedFile, shuffle=True)
    dataset: Any = loader.dataset
    dataset.file.seek(24)
    dataset.position = 0
    state = loader.generator, dict(vars(dataset)), defects.COUNT, len(defects.LEAK)
    with closed(dataset):
        assert climbed(loader).compared
        assert dataset.file.tell() == 24
    assert (loader.generator, dict(vars(dataset)), defects.COUNT, len(defects.LEAK)) == state
    remembers = defects.in_batches(defects.Remembers)
    climbed(remembers, (0,))
    assert remembers.dataset.position == 0  # type: ignore[attr-defined]


def test_a_sampler_that_raises_is_the_users_mistake(climb: Climb):
    def indices() -> Any:
        yield 1
        raise KeyError("no such split")

    with pytest.raises(Mistake, match="sampler of it raised KeyError: 'no such split'") as caught:
        climbed(DataLoader(defects.Base(), sampler=indices()))  # type: ignore[arg-type]
    assert caught.value.hint.endswith("in indices")


def test_a_length_that_raises_is_not_called_a_sampler(climb: Climb):
    class Unmeasured(defects.Base):
        def __len__(self) -> int:
            raise OSError("no list of files")

    with pytest.raises(Mistake, match=r"^len\(\) of it raised OSError: no list of files"):
        ramp(Target("it", Unmeasured()), [0], Budget(20), lambda what: None)
