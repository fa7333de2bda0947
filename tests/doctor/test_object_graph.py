"""The audit names what will hurt by its path, leaves the data set as it is, and is quick."""

from __future__ import annotations

import io
import os
import pickle
import random
import sqlite3
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from rich.console import Console
from rich.live import Live
from torch.utils.data import DataLoader, Dataset, RandomSampler

import holdfast
from holdfast.audit.finding import Severity
from holdfast.doctor.graph import audit
from holdfast.doctor.pickling import pickled
from holdfast.doctor.symptom import Symptom
from holdfast.targets.target import Target

ERROR, WARNING, NOTE = Severity


class Holder(Dataset):
    """A data set with whatever members it is given."""

    def __init__(self, **members: object) -> None:
        vars(self).update(members)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index


def of(dataset: Any, loader: Any = DataLoader, **options: Any) -> Target:
    """As if a user had named a loader with two workers."""
    return Target("", dataset, loader(dataset, num_workers=2, **options))


def found(target: Target) -> dict[str, tuple[str, Severity]]:
    return {symptom.where: (symptom.check, symptom.severity) for symptom in audit(target)}


def only(target: Target) -> Symptom:
    (symptom,) = audit(target)
    return symptom


def double(x: float) -> float:
    return 2 * x


@pytest.mark.parametrize(
    "loader", [DataLoader, holdfast.DataLoader, partial(DataLoader, multiprocessing_context="spawn")]
)
def test_of_a_healthy_data_set_nothing_is_told(loader, tmp_path: Path):
    (tmp_path / "a.jpg").write_bytes(b"x")
    healthy = Holder(
        root=tmp_path,
        paths=[str(tmp_path / "a.jpg")] * 3,
        labels=numpy.arange(1000),
        weights=torch.rand(10),
        transform=partial(double),
        split="train",
        table={"a": 1, "b": [1, 2]},
        file=holdfast.per_worker(open, tmp_path / "a.jpg"),
        net=torch.nn.Linear(2, 2),
    )
    assert not audit(of(healthy, loader))
    assert not audit(Target("", healthy))
    assert not audit(of(healthy, loader, collate_fn=torch.utils.data.default_collate, sampler=RandomSampler(healthy)))


# HD01, HD02

LOCK = threading.Lock()


@contextmanager
def another_thread(name: str) -> Iterator[None]:
    go = threading.Event()
    thread = threading.Thread(target=go.wait, name=name)
    thread.start()
    try:
        yield
    finally:
        go.set()
        thread.join()


def test_other_threads_are_named_where_workers_are_forks():
    with another_thread("prefetch"):
        symptom = only(of(Holder()))
        assert (symptom.check, symptom.severity, symptom.where) == ("HD01", WARNING, "prefetch")
        assert not audit(of(Holder(), multiprocessing_context="spawn"))
        assert not audit(of(Holder(), holdfast.DataLoader))
        assert found(of(Holder(), holdfast.DataLoader, start="fork"))["prefetch"] == ("HD01", WARNING)


def test_the_bar_that_the_doctor_shows_is_none_of_them():
    with Live(console=Console(file=io.StringIO())), another_thread("prefetch"):
        assert list(found(of(Holder()))) == ["prefetch"]
    with Live(console=Console(file=io.StringIO())):
        assert not audit(of(Holder()))


def test_a_lock_that_is_held_meanwhile_is_named():
    with another_thread("prefetch"), LOCK:
        name = f"{__name__}.LOCK"
        assert found(of(Holder()))[name] == ("HD02", ERROR)
        assert name not in found(of(Holder(), multiprocessing_context="spawn"))
    with another_thread("prefetch"):
        assert f"{__name__}.LOCK" not in found(of(Holder()))


def test_a_lock_of_the_data_set_that_is_held():
    lock = threading.Lock()
    with lock:
        assert found(of(Holder(cache=Holder(lock=lock))))["dataset.cache.lock"] == ("HD02", ERROR)
    assert found(of(Holder(cache=Holder(lock=lock))))["dataset.cache.lock"] == ("HD05", NOTE)


# HD03


def test_handles_of_data_set_and_functions_are_named_once(tmp_path: Path):
    path = tmp_path / "records"
    path.write_bytes(b"x")
    with path.open("rb") as file, closing(sqlite3.connect(":memory:")) as database:

        def collate(samples: list[int]) -> Any:
            return database, samples

        told = found(of(Holder(store=Holder(file=file)), collate_fn=collate, worker_init_fn=partial(print, file)))
    assert told["dataset.store.file"] == ("HD03", ERROR)
    assert told["collate_fn.<closure>.database"] == ("HD03", ERROR)
    assert told["worker_init_fn.args[0]"] == ("HD03", ERROR)
    assert {check for check, _ in told.values()} == {"HD03"}
    assert found(of(Holder(file=file))) == {"dataset.file": ("HD05", NOTE)}  # closed, and still no pickle


def test_a_handle_that_has_to_be_pickled_is_said_to_be_one_that_cannot(tmp_path: Path):
    (tmp_path / "records").write_bytes(b"x")
    with (tmp_path / "records").open("rb") as file:
        symptom = only(of(Holder(file=file), multiprocessing_context="spawn"))
        assert (symptom.check, symptom.severity, symptom.where) == ("HD05", ERROR, "dataset.file")
        assert symptom.fix.startswith("self.file = holdfast.per_worker(open, ")
        assert found(of(Holder(file=file), holdfast.DataLoader, start="zygote")) == {"dataset.file": ("HD05", ERROR)}
        assert found(of(Holder(file=file), holdfast.DataLoader)) == {"dataset.file": ("HD03", ERROR)}  # becomes a fork


# HD04


def test_a_tensor_on_a_device_is_named():
    """On no real device: there is none here. What is asked of the tensor is the same."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        there = torch.empty(3, device="cuda")
    found = [symptom for symptom in audit(of(Holder(mean=there))) if symptom.check == "HD04"]
    assert [(one.where, one.severity) for one in found] == [("dataset.mean", ERROR)]
    assert "lies on cuda" in found[0].what
    found = [one for one in audit(of(Holder(mean=there), multiprocessing_context="spawn")) if one.check == "HD04"]
    assert [one.severity for one in found] == [WARNING]
    assert not audit(of(Holder(mean=torch.empty(3), shape=torch.empty(3, device="meta"))))


# HD05


def test_a_lambda_fails_under_spawn_and_is_only_a_note_with_ours():
    dataset = Holder(transform=Holder(steps=[double, lambda x: x + 1]))
    symptom = only(of(dataset, multiprocessing_context="spawn"))
    assert (symptom.check, symptom.severity) == ("HD05", ERROR)
    assert symptom.where == "dataset.transform.steps[1]"
    assert "(function)" in symptom.what
    assert "Can't pickle" in symptom.evidence
    for target in (of(dataset), of(dataset, holdfast.DataLoader), Target("", dataset)):
        assert found(target) == {"dataset.transform.steps[1]": ("HD05", NOTE)}


def test_what_nobody_can_send_is_another_matter():
    dataset = Holder(store=Holder(view=zlib.compressobj()), other=[zlib.compressobj()])
    both = {"dataset.store.view", "dataset.other[0]"}
    assert found(of(dataset, multiprocessing_context="spawn")) == dict.fromkeys(both, ("HD05", ERROR))
    assert found(of(dataset, holdfast.DataLoader, start="zygote")) == dict.fromkeys(both, ("HD05", ERROR))
    assert found(of(dataset, holdfast.DataLoader)) == dict.fromkeys(both, ("HD05", WARNING))  # becomes a fork
    assert found(of(dataset)) == dict.fromkeys(both, ("HD05", NOTE))
    symptom = audit(of(dataset))[0]
    assert "(zlib.Compress) cannot be sent to another process" in symptom.what
    assert "cannot pickle 'zlib.Compress' object" in symptom.evidence


def test_a_lambda_over_something_that_nobody_can_send():
    view = zlib.compressobj()
    symptom = only(of(Holder(transform=lambda x: (x, view)), holdfast.DataLoader, start="zygote"))
    assert (symptom.where, symptom.severity) == ("dataset.transform.<closure>.view", ERROR)


class LeavesOut(Holder):
    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "view"}


def test_what_a_data_set_leaves_out_of_its_pickle_is_not_to_blame():
    assert not audit(of(LeavesOut(view=zlib.compressobj()), multiprocessing_context="spawn"))
    dataset = LeavesOut(view=zlib.compressobj(), step=lambda x: x)
    assert list(found(of(dataset, multiprocessing_context="spawn"))) == ["dataset.step"]


def test_a_member_behind_a_million_others_is_found():
    dataset = Holder(paths=[f"{i}" for i in range(1_000_000)], last=zlib.compressobj())
    assert found(of(dataset, multiprocessing_context="spawn"))["dataset.last"] == ("HD05", ERROR)


def test_what_multiprocessing_hands_to_children_can_be_pickled():
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    dataset = Holder(lock=context.Lock(), value=context.Value("i"), shared=torch.zeros(3).share_memory_())
    assert not audit(of(dataset, multiprocessing_context="spawn"))


# HD06


def test_a_large_pickle_is_weighed_times_the_workers():
    dataset = Holder(pixels=numpy.zeros(300 << 20, numpy.uint8), few=[1, 2])
    symptom = only(of(dataset, multiprocessing_context="spawn"))
    assert (symptom.check, symptom.severity, symptom.where) == ("HD06", WARNING, "dataset.pixels")
    assert "300.0 MiB" in symptom.what
    assert "× 2 workers" in symptom.what
    assert found(of(dataset)) == {"dataset.pixels": ("HD06", NOTE)}
    assert not audit(of(dataset, holdfast.DataLoader))  # once for all, in shared memory
    assert not audit(of(Holder(pixels=torch.zeros(300 << 20, dtype=torch.uint8)), multiprocessing_context="spawn"))


def test_an_array_is_weighed_when_no_time_is_left(monkeypatch):
    monkeypatch.setattr("holdfast.doctor.pickling._ALL", 0.0)
    weighed = pickled({"dataset": Holder(pixels=numpy.zeros(3 << 20, numpy.uint8), few=[1, 2])})
    assert weighed.bulk is not None
    assert (weighed.bulk[0], weighed.bulk[1] >> 20) == ("dataset.pixels", 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: [f"/data/{i:06}.jpg" for i in range(300_000)],
        lambda: {f"{i:06}": {"label": i, "path": f"{i:06}.jpg"} for i in range(100_000)},
        lambda: {"train": {"a": [(f"{i:06}", i) for i in range(200_000)]}, "val": list(range(100_000))},
        lambda: [[str(i * j) for i in range(300)] for j in range(900)],
        lambda: [Holder(number=i) for i in range(50_000)],
    ],
    ids=["list", "dict", "nested", "wide", "objects"],
)
def test_the_size_is_estimated_from_a_part(make):
    dataset = Holder(items=make())
    weighed = pickled({"dataset": dataset})
    assert weighed.weight is not None
    assert weighed.weight.size == pytest.approx(len(pickle.dumps(dataset, 5)), rel=0.3)
    assert weighed.bulk is not None
    assert weighed.bulk[0] == "dataset.items"


class Slow(Holder):
    def __getstate__(self) -> dict[str, Any]:
        time.sleep(60)
        return {}


class Crashing(Holder):
    def __getstate__(self) -> dict[str, Any]:
        os._exit(3)


@pytest.mark.parametrize("kind", [Slow, Crashing])
def test_pickling_without_end_is_given_up(kind: type[Holder]):
    symptom = only(of(kind(), multiprocessing_context="spawn"))
    assert (symptom.check, symptom.severity) == ("HD06", ERROR)


# HD07


def test_many_small_objects_are_counted():
    many = [f"/data/train/{i:07}.jpg" for i in range(400_000)]
    told = [one for one in audit(of(Holder(split={"train": many}))) if one.check == "HD07"]
    assert [(one.where, one.severity) for one in told] == [("dataset.split['train']", NOTE)]
    assert "400,000 small objects" in told[0].what
    loader = DataLoader(Holder(paths=many), num_workers=24)
    told = [one for one in audit(Target("", loader.dataset, loader)) if one.check == "HD07"]
    assert [one.severity for one in told] == [WARNING]
    assert not audit(of(Holder(names=list(map(str, range(1000))), codes=numpy.zeros(1 << 23), one=["x"] * 1_000_000)))


# HD08


def test_random_generators_are_named_and_that_of_the_sampler_is_not():
    dataset = Holder(flip=Holder(rng=random.Random(1)), noise=numpy.random.default_rng(1))
    expected = {"dataset.flip.rng": ("HD08", WARNING), "dataset.noise": ("HD08", WARNING)}
    assert found(of(dataset)) == expected
    plain = Holder()
    assert not audit(of(plain, sampler=RandomSampler(plain, generator=torch.Generator())))


# HD11


def test_a_relative_path_is_worth_a_note_and_more_after_a_change_of_folder(tmp_path: Path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.jpg").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    dataset = Holder(paths=["data/a.jpg"] * 3, split="data")
    assert found(Target("", dataset, None, str(tmp_path))) == {"dataset.paths[0]": ("HD11", NOTE)}
    assert found(Target("", dataset, None, "/")) == {"dataset.paths[0]": ("HD11", WARNING)}
    monkeypatch.chdir("/")
    assert found(Target("", dataset, None, str(tmp_path))) == {"dataset.paths[0]": ("HD11", ERROR)}
    assert not audit(Target("", dataset, None, "/"))


def test_absolute_paths_that_do_not_exist(tmp_path: Path):
    (tmp_path / "a.jpg").write_bytes(b"x")
    there, missing = f"{tmp_path}/a.jpg", f"{tmp_path}/b/c.jpg"
    symptom = only(of(Holder(samples=[(there, 0), (missing, 1), (missing, 2)])))
    assert (symptom.check, symptom.severity, symptom.where) == ("HD11", WARNING, "dataset.samples[1][0]")
    assert symptom.what.startswith("2 of 3 paths that were looked for do not exist")
    assert symptom.evidence == f"there is no {tmp_path}/b"
    both = Holder(paths=[missing], root=os.path.dirname(missing), note=missing)
    assert found(of(both)) == {"dataset.root": ("HD11", WARNING)}  # the same folder is missing
    assert found(of(Holder(root=missing))) == {"dataset.root": ("HD11", WARNING)}
    assert found(of(Holder(cache_file=missing))) == {"dataset.cache_file": ("HD11", NOTE)}  # perhaps to be written
    assert not audit(of(Holder(root=there, pattern=f"{tmp_path}/*.png", url="https://x/y", tokens=["/", "/s"])))


# Manners


class Fragile(Holder):
    """Any question but pickling is an error, and pickling has consequences."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name) if name.startswith("f") else AttributeError(name)

    def __reduce__(self) -> Any:
        self.times += 1
        self.file.read(1)
        return Fragile, ()


def test_the_data_set_is_as_it_was(tmp_path: Path):
    path = tmp_path / "records"
    path.write_bytes(bytes(100))
    with path.open("rb", buffering=0) as file:
        rng = random.Random(1)
        dataset = Fragile(times=0, file=file, rng=rng, tensor=torch.zeros(3), lists=[[1], [2]])
        before = (dict(vars(dataset)), rng.getstate(), dataset.tensor.is_shared())
        audit(of(dataset, multiprocessing_context="spawn"))
        assert (vars(dataset), rng.getstate(), dataset.tensor.is_shared()) == before
        assert dataset.times == 0


class Weird:
    def __reduce_ex__(self, protocol: Any) -> Any:
        raise KeyboardInterrupt

    def __class_getitem__(cls, item: Any) -> Any:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __hash__(self) -> int:
        raise RuntimeError


def test_it_never_raises():
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for member in (
        Weird(),
        cycle,
        deep,
        {"x": Weird()},
        type("Local", (), {})(),
        lambda: Weird(),
        "\ud800/\x00",
        object,
    ):
        audit(of(Holder(member=member), multiprocessing_context="spawn"))
    audit(Target("", None))


def test_a_check_that_fails_itself_does_not_withhold_the_others(monkeypatch):
    from holdfast.doctor import graph

    monkeypatch.setattr(graph, "estimate", lambda value: 1 / 0)
    told = found(of(Holder(rng=random.Random(1), many=list(range(5000)))))
    assert told == {"dataset.rng": ("HD08", WARNING), "holdfast": ("HD07", NOTE)}


MILLION = {
    "str": lambda: [f"/data/train/{i:07}.jpg" for i in range(1_000_000)],
    "dicts": lambda: [{"path": f"{i}.jpg", "label": i % 10} for i in range(1_000_000)],
    "nested": lambda: {"train": [[(str(i), [j]) for j in range(10)] for i in range(100_000)]},
}


MEASURE = """
import gc, time
from test_object_graph import MILLION, Holder, of
from holdfast.doctor.graph import audit
for make in MILLION.values():
    gc.disable()
    target = of(Holder(items=make()), multiprocessing_context="spawn")
    gc.enable()
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        audit(target)
        seconds.append(time.perf_counter() - began)
    print(min(seconds))
"""


def test_a_million_items_are_audited_in_a_moment():
    """100 ms in quiet, see bench; to look at each item takes seconds. In a process of its own, which forks quickly."""
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", MEASURE], env=environ, capture_output=True, check=True)
    assert max(map(float, ran.stdout.split())) < 0.8
