"""What is in a data set that will hurt is named by its path; what is harmless is not."""

from __future__ import annotations

import concurrent.futures
import functools
import gzip
import io
import itertools
import logging
import mmap
import multiprocessing
import multiprocessing.connection
import multiprocessing.pool
import os
import pickle
import queue
import random
import socket
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import types
import zipfile
from contextlib import ExitStack
from pathlib import Path

import numpy
import pytest
import requests
import torch
from torch.utils.data import Dataset

from holdfast.audit.finding import Severity, target
from holdfast.audit.generators import Watch, fingerprints, random_objects, repeated, suspects
from holdfast.audit.graph import Limits, walk
from holdfast.audit.handles import handles, shared_by_fork
from holdfast.audit.lists import large_containers
from holdfast.audit.paths import kind_of_emptiness, relative_paths


class Holder(Dataset):
    """A data set with whatever members it is given."""

    def __init__(self, **members: object) -> None:
        vars(self).update(members)


@pytest.fixture
def closing():
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.bin"
    path.write_bytes(bytes(1000))
    return path


def paths_of(root: object) -> list[str]:
    return [path for path, _ in walk(root)]


# The walk


class Slotted:
    __slots__ = ("inner", "never_assigned")

    def __init__(self, inner: object) -> None:
        self.inner = inner


class Named(str):
    """An object that is no plain string, to be looked for."""


def closure_over(needle: object):
    def load():
        return needle

    return load


def holding_in(where: str, needle: object) -> Holder:
    class Owner:
        def __init__(self) -> None:
            self.needle = needle

        def method(self) -> None: ...

    def with_default(value: object = needle) -> None: ...

    module = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU())
    module[1].needle = needle
    named = torch.nn.Module()
    named.child = torch.nn.Identity()
    named.child.needle = needle
    return {
        "attribute": Holder(store=Holder(needle=needle)),
        "slot": Holder(store=Slotted(needle)),
        "list": Holder(transform=Holder(transforms=[1, 2, Holder(rng=needle)])),
        "tuple": Holder(pair=(0, needle)),
        "dict": Holder(table={"x": needle}),
        "dict of numbers": Holder(table={3: needle}),
        "set": Holder(names={needle}),
        "partial": Holder(load=functools.partial(print, 1, key=needle)),
        "method": Holder(load=Owner().method),
        "closure": Holder(load=closure_over(needle)),
        "default": Holder(load=with_default),
        "sequential": Holder(net=module),
        "module": Holder(net=named),
    }[where]


@pytest.mark.parametrize(
    ("where", "path"),
    [
        ("attribute", "dataset.store.needle"),
        ("slot", "dataset.store.inner"),
        ("list", "dataset.transform.transforms[2].rng"),
        ("tuple", "dataset.pair[1]"),
        ("dict", "dataset.table['x']"),
        ("dict of numbers", "dataset.table[3]"),
        ("set", "dataset.names.<item>"),
        ("partial", "dataset.load.keywords['key']"),
        ("method", "dataset.load.__self__.needle"),
        ("closure", "dataset.load.<closure>.needle"),
        ("default", "dataset.load.__defaults__[0]"),
        ("sequential", "dataset.net[1].needle"),
        ("module", "dataset.net.child.needle"),
    ],
)
def test_an_object_is_found_by_the_path_that_a_user_would_write(where: str, path: str):
    needle = Named("needle")
    assert [found for found, value in walk(holding_in(where, needle)) if value is needle] == [path]


SPRUNG: list[object] = []


class Trap:
    """Every way to run code of this class fails the test."""

    def __init__(self, **members: object) -> None:
        object.__getattribute__(self, "__dict__").update(members)

    def _sprung(self, *args: object):
        SPRUNG.append(args)  # kept, as who looks may catch the error
        raise AssertionError("code of the data set was run")

    __class__ = property(_sprung)  # type: ignore[assignment]
    __getattr__ = __getattribute__ = __iter__ = __len__ = __getitem__ = __eq__ = __hash__ = __repr__ = __bool__ = (
        _sprung
    )
    __reduce__ = __sizeof__ = __str__ = __fspath__ = __contains__ = _sprung
    value = property(_sprung)


class TrapDict(dict):
    items = values = keys = __iter__ = __len__ = __getitem__ = __reversed__ = Trap._sprung


class TrapList(list):
    __iter__ = __len__ = __getitem__ = Trap._sprung


class Meta(type):
    __eq__ = __hash__ = __getattribute__ = __instancecheck__ = __subclasscheck__ = Trap._sprung  # type: ignore[assignment]


class OfMeta(metaclass=Meta):
    pass


EVERYTHING = [
    lambda root: list(walk(root)),
    handles,
    random_objects,
    large_containers,
    relative_paths,
    kind_of_emptiness,
]


@pytest.mark.parametrize("look", EVERYTHING)
def test_no_code_of_the_data_set_is_run(look):
    needle = Named("needle")
    root = Trap(table=TrapDict(x=TrapList([Trap(needle=needle)])), keyed={1: 2}, meta=object.__new__(OfMeta))
    SPRUNG.clear()
    look(root)
    assert not SPRUNG
    assert [path for path, value in walk(root) if value is needle] == ["dataset.table['x'][0].needle"]


def test_a_cycle_is_walked_once():
    root = Holder()
    root.me, root.list = root, [root]
    assert paths_of(root) == ["dataset", "dataset.list"]


def test_a_key_of_a_class_of_the_users_is_named_by_its_class():
    class Key:
        def __repr__(self):
            raise AssertionError("was asked")

    assert any(path.startswith("dataset.table[<") and "Key>" in path for path in paths_of(Holder(table={Key(): 1})))


def test_of_a_long_container_the_ends_and_the_middle_are_looked_at():
    root = Holder(samples=list(range(1_000_000)), names={i: i for i in range(1000)}, few=list(range(64)))
    found = paths_of(root)
    assert [path for path in found if "samples[" in path] == [
        f"dataset.samples[{i}]" for i in [*range(8), 500_000, 999_999]
    ]
    assert [path for path in found if "names[" in path] == [f"dataset.names[{i}]" for i in [*range(8), 999]]
    assert "dataset.few[40]" in found


def test_depth_and_number_are_bounded():
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]
    assert len(paths_of(deep)) == Limits().depth + 1
    wide = [[[0] * 60 for _ in range(60)] for _ in range(60)]
    assert len(paths_of(wide)) == Limits().objects


def test_modules_classes_arrays_and_loggers_are_not_entered():
    array = numpy.zeros(3).view(type("Own", (numpy.ndarray,), {}))
    array.note = "inside"
    root = Holder(module=os, kind=Path, array=array, tensor=torch.zeros(3), log=logging.getLogger("of a test"))
    assert sorted(paths_of(root)) == [
        "dataset",
        "dataset.array",
        "dataset.kind",
        "dataset.log",
        "dataset.module",
        "dataset.tensor",
    ]


def test_a_walk_is_cheap_however_long_the_lists_are():
    class Transform:
        def __init__(self) -> None:
            self.probability, self.size, self.rng = 0.5, (224, 224), random.Random(0)

    root = Holder(
        samples=[(f"/data/{i}.jpg", i % 1000) for i in range(1_000_000)],
        class_to_idx={str(i): i for i in range(1000)},
        transform=Holder(transforms=[Transform() for _ in range(8)]),
        net=torch.nn.Sequential(*(torch.nn.Linear(1, 1) for _ in range(5))),
    )
    handles(root)
    began = time.process_time()
    for _ in range(10):
        handles(root)
    assert time.process_time() - began < 1  # 10 ms in quiet: one that looks at each element takes 20 s


# Handles


def file_at(path: Path, closing: ExitStack):
    return closing.enter_context(open(path, "rb"))


def test_an_open_file_is_named_with_the_line_to_write_instead(records: Path, closing: ExitStack):
    (finding,) = handles(Holder(store=Holder(file=file_at(records, closing))))
    assert (finding.path, finding.kind) == ("dataset.store.file", "BufferedReader")
    assert finding.fix == f"self.file = holdfast.per_worker(open, {str(records)!r}, 'rb')"
    assert "one position" in finding.why
    assert finding.severity is Severity.ERROR
    assert str(finding).startswith("dataset.store.file (BufferedReader): ")


def opened(kind: str, path: Path, closing: ExitStack) -> object:
    """A live one of each kind, closed again after the test."""
    if kind == "thread":
        go = threading.Event()
        thread = threading.Thread(target=go.wait)
        thread.start()
        closing.callback(thread.join)
        closing.callback(go.set)
        return thread
    if kind == "executor":
        executor = closing.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        executor.submit(int).result()
        return executor
    if kind == "process":
        return closing.enter_context(subprocess.Popen(["cat"], stdin=subprocess.PIPE))
    if kind == "generator":
        return (i for i in range(3))
    if kind == "held lock":
        lock = threading.Lock()
        closing.enter_context(lock)
        return lock
    if kind == "held condition":
        condition = threading.Condition()
        closing.enter_context(condition)
        return condition
    if kind == "tar":
        with tarfile.open(path.with_suffix(".tar"), "w") as archive:
            archive.add(path, "x")
        return closing.enter_context(tarfile.open(path.with_suffix(".tar")))
    if kind == "zip":
        with zipfile.ZipFile(path.with_suffix(".zip"), "w") as archive:
            archive.write(path, "x")
        return closing.enter_context(zipfile.ZipFile(path.with_suffix(".zip")))
    if kind == "gzip":
        with gzip.open(path.with_suffix(".gz"), "wb") as file:
            file.write(b"x")
        return closing.enter_context(gzip.open(path.with_suffix(".gz")))
    return closing.enter_context(
        {
            "file": lambda: open(path, "rb"),
            "unbuffered file": lambda: open(path, "rb", buffering=0),
            "file to change": lambda: open(path, "r+b"),
            "text file": lambda: open(path),
            "temporary file": tempfile.NamedTemporaryFile,
            "socket": socket.socket,
            "file of a socket": lambda: closing.enter_context(socket.socket()).makefile("rb"),
            "database": lambda: Closed(sqlite3.connect(path.with_suffix(".db"))),
            "session": requests.Session,
            "pool": lambda: multiprocessing.pool.ThreadPool(1),
        }[kind]()
    )


class Closed:
    """sqlite3's own context manager ends a transaction, and leaves the connection open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        return self._connection

    def __exit__(self, *error: object) -> None:
        self._connection.close()


LIVE = [
    ("file", "BufferedReader", "holdfast.per_worker(open, '{path}', 'rb')"),
    ("unbuffered file", "FileIO", "holdfast.per_worker(open, '{path}', 'rb')"),
    ("file to change", "BufferedRandom", "holdfast.per_worker(open, '{path}', 'rb+')"),
    ("text file", "TextIOWrapper", "holdfast.per_worker(open, '{path}', 'r')"),
    ("temporary file", "tempfile._TemporaryFileWrapper", "holdfast.per_worker(open, "),
    ("zip", "zipfile.ZipFile", "holdfast.per_worker(zipfile.ZipFile, '{stem}.zip')"),
    ("tar", "tarfile.TarFile", "holdfast.per_worker(tarfile.open, '{stem}.tar')"),
    ("gzip", "gzip.GzipFile", "holdfast.per_worker(gzip.open, '{stem}.gz')"),
    ("socket", "socket.socket", "holdfast.per_worker(socket.create_connection, address)"),
    ("file of a socket", "BufferedReader", "holdfast.per_worker(socket.create_connection, address)"),
    ("database", "sqlite3.Connection", "holdfast.per_worker(sqlite3.connect, path)"),
    ("session", "requests.sessions.Session", "holdfast.per_worker(requests.Session)"),
    ("process", "subprocess.Popen", "holdfast.per_worker(subprocess.Popen, command)"),
    ("thread", "threading.Thread", "holdfast.per_worker("),
    ("executor", "concurrent.futures.thread.ThreadPoolExecutor", "holdfast.per_worker("),
    ("pool", "multiprocessing.pool.ThreadPool", "holdfast.per_worker("),
    ("generator", "generator", "function"),
    ("held lock", "_thread.lock", "multiprocessing.Lock()"),
    ("held condition", "threading.Condition", "multiprocessing.Lock()"),
]


@pytest.mark.parametrize(("kind", "name", "fix"), LIVE)
def test_what_is_open_or_running_hurts_forked_workers(kind, name, fix, records: Path, closing: ExitStack):
    (finding,) = handles(Holder(it=opened(kind, records, closing)))
    assert (finding.path, finding.kind) == ("dataset.it", name)
    assert finding.fix.startswith("self.it = " + fix.format(path=records, stem=records.with_suffix("")))
    assert shared_by_fork([finding]) == [finding]


@pytest.mark.parametrize("kind", [kind for kind, *_ in LIVE if kind not in ("session", "generator", "socket")])
def test_what_was_closed_or_has_ended_does_not(kind: str, records: Path):
    with ExitStack() as closing:
        it = opened(kind, records, closing)
    if kind == "thread" or kind == "process":
        assert not handles(Holder(it=it))
    assert not shared_by_fork(handles(Holder(it=it)))


def test_a_closed_socket_and_a_generator_at_its_end_do_not():
    ended = (i for i in range(1))
    list(ended)
    connection = socket.socket()
    connection.close()
    assert not handles(Holder(ended=ended, connection=connection))


@pytest.mark.parametrize(
    "make",
    [
        lambda closing, path: io.BytesIO(b"x"),
        lambda closing, path: io.TextIOWrapper(io.BytesIO(b"x")),
        lambda closing, path: closing.enter_context(zipfile.ZipFile(io.BytesIO(), "w")),
        lambda closing, path: closing.enter_context(path.open("ab")),  # a log: each line goes to the end
        lambda closing, path: sys.__stderr__,
        lambda closing, path: numpy.memmap(path, mode="r"),
        lambda closing, path: multiprocessing.get_context("fork").Lock(),
        lambda closing, path: multiprocessing.get_context("fork").Event(),
        lambda closing, path: closing_queue(closing),
        lambda closing, path: threading.local(),
        lambda closing, path: concurrent.futures.ThreadPoolExecutor(1),  # starts its threads at the first task
        lambda closing, path: itertools.count(),
        lambda closing, path: logging.getLogger("of a test"),
    ],
)
def test_what_is_harmless_is_not_a_finding(make, records: Path, closing: ExitStack):
    assert not handles(Holder(it=make(closing, records)))


def closing_queue(closing: ExitStack) -> object:
    made = multiprocessing.get_context("fork").Queue()
    closing.callback(made.close)
    return made


def test_what_guards_nothing_between_processes_is_only_noted():
    root = Holder(lock=threading.Lock(), event=threading.Event(), queue=queue.Queue(), again=threading.RLock())
    found = handles(root)
    assert [finding.path for finding in found] == [f"dataset.{name}" for name in ("lock", "event", "queue", "again")]
    assert not shared_by_fork(found)


def test_an_event_that_somebody_waits_for_is_not_taken_for_a_held_lock(closing: ExitStack):
    event = threading.Event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    closing.callback(thread.join)
    closing.callback(event.set)
    while not event._cond._waiters:  # type: ignore[attr-defined]
        time.sleep(0.001)
    assert not shared_by_fork(handles(Holder(event=event)))


def test_a_map_is_noted_only_when_workers_could_write_to_it(records: Path, closing: ExitStack):
    file = closing.enter_context(records.open("r+b"))
    to_read = closing.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    to_write = closing.enter_context(mmap.mmap(file.fileno(), 0))
    (finding,) = handles(Holder(to_read=to_read, to_write=to_write))
    assert (finding.path, finding.severity) == ("dataset.to_write", Severity.NOTE)


def test_what_belongs_to_a_handle_is_not_listed_beside_it(closing: ExitStack, records: Path):
    thread = opened("thread", records, closing)
    assert [finding.path for finding in handles(Holder(thread=thread, session=requests.Session()))] == [
        "dataset.thread",
        "dataset.session",
    ]


def test_the_file_behind_a_method_is_found(records: Path, closing: ExitStack):
    (finding,) = handles(Holder(read=file_at(records, closing).read))
    assert finding.path == "dataset.read.__self__"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("h5py._hl.files", "File"),
        ("lmdb", "Environment"),
        ("builtins", "Environment"),  # so the class of lmdb in C is called
        ("psycopg2.extensions", "connection"),
        ("pymongo.synchronous.mongo_client", "MongoClient"),
        ("botocore.client", "BaseClient"),
        ("grpc._channel", "Channel"),
        ("zmq.sugar.socket", "Socket"),
    ],
)
def test_clients_of_libraries_are_known_by_name_even_when_derived_from(module: str, name: str):
    """Stand-ins: these libraries are not dependencies of the tests. Only the names of their classes are tried."""
    stand_in = type(name, (), {"__module__": module})
    (finding,) = handles(Holder(env=type("Own", (stand_in,), {})()))
    assert shared_by_fork([finding])
    assert "holdfast.per_worker(" in finding.fix


def test_a_closed_hdf5_file_is_not_a_finding():
    """A stand-in for h5py: a file whose identifier says whether it is valid."""
    stand_in = type("File", (), {"__module__": "h5py._hl.files"})
    closed, still_open = stand_in(), stand_in()
    closed._id, still_open._id = types.SimpleNamespace(valid=False), types.SimpleNamespace(valid=True)
    assert [finding.path for finding in handles(Holder(a=closed, b=still_open))] == ["dataset.b"]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("dataset.file", "self.file"),
        ("dataset.store.files[3]", "self.files[3]"),
        ("dataset.table['a.b']", "self.table['a.b']"),
        ("dataset.load.<closure>.file", "file"),
        ("dataset", "dataset"),
    ],
)
def test_the_fix_begins_as_the_line_in_the_class_does(path: str, line: str):
    assert target(path) == line


# Random generators

MAKERS = {
    "random.Random": lambda: random.Random(7),
    "numpy.Generator": lambda: numpy.random.default_rng(7),
    "numpy.Generator of a twister": lambda: numpy.random.Generator(numpy.random.MT19937(7)),
    "numpy.RandomState": lambda: numpy.random.RandomState(7),
    "numpy.PCG64": lambda: numpy.random.PCG64(7),
    "torch.Generator": lambda: torch.Generator().manual_seed(7),
}


def draw(rng: object, count: int = 1) -> None:
    for _ in range(count):
        if isinstance(rng, random.Random):
            rng.random()
        elif isinstance(rng, torch.Generator):
            torch.rand(1, generator=rng)
        elif isinstance(rng, numpy.random.BitGenerator):
            rng.random_raw()
        else:
            rng.random()  # type: ignore[attr-defined]


def seed(rng: object, value: int) -> None:
    if isinstance(rng, torch.Generator):
        rng.manual_seed(value)
    elif isinstance(rng, numpy.random.Generator):
        rng.bit_generator.state = type(rng.bit_generator)(value).state
    else:
        rng.seed(value)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", MAKERS)
def test_a_generator_that_is_drawn_from_in_a_worker_is_named(kind: str):
    trainers = Holder(transform=Holder(rng=MAKERS[kind]()))
    shipped = fingerprints(trainers)
    workers = pickle.loads(pickle.dumps(trainers))
    watch = Watch(workers)
    watch.excuse_seeded()
    assert not watch.drawn()
    draw(workers.transform.rng, 100)
    (finding,) = repeated(watch.drawn(), shipped)
    assert (finding.path, finding.kind) == ("dataset.transform.rng", kind.split(" of ")[0])
    assert "same numbers" in finding.why
    assert finding.fix.startswith("rng = ")
    assert "torch.initial_seed()" in finding.fix


def work(root: Holder, end: multiprocessing.connection.Connection) -> None:
    watch = Watch(root)
    watch.excuse_seeded()
    end.send(([root.rng.random() for _ in range(10)], watch.drawn()))


def test_two_workers_tell_the_same_of_the_numbers_that_they_share():
    root = Holder(rng=random.Random(7))
    context, shipped, told = multiprocessing.get_context("fork"), fingerprints(root), []
    for _ in range(2):
        ours, theirs = context.Pipe()
        with ours, theirs:
            worker = context.Process(target=work, args=(root, theirs))
            worker.start()
            numbers, drawn = ours.recv()
            worker.join()
            worker.close()
        told.append((numbers, [finding.path for finding in repeated(drawn, shipped)]))
    assert told[0] == told[1]
    assert told[0][1] == ["dataset.rng"]


@pytest.mark.parametrize("count", [1, 623, 624, 625, 100_000])
def test_however_much_was_drawn_it_is_not_taken_for_seeding(count: int):
    root = Holder(python=random.Random(7), numpy=numpy.random.RandomState(7))
    draw(root.python, 100)
    watch = Watch(root)
    draw(root.python, count)
    root.numpy.random_sample(count)
    assert [one.path for one in watch.drawn()] == ["dataset.python", "dataset.numpy"]


@pytest.mark.parametrize("kind", ["random.Random", "numpy.RandomState", "torch.Generator"])
def test_one_that_is_seeded_for_every_item_is_not_named(kind: str):
    root = Holder(rng=MAKERS[kind]())
    watch = Watch(root)
    for index in range(4):
        seed(root.rng, 1000 + index)
        draw(root.rng, 10)
    assert not watch.drawn()


@pytest.mark.parametrize("kind", ["random.Random", "numpy.RandomState", "torch.Generator", "numpy.Generator"])
def test_one_that_worker_init_fn_has_seeded_is_not_named(kind: str):
    root = Holder(rng=MAKERS[kind]())
    watch = Watch(root)
    seed(root.rng, 5)
    watch.excuse_seeded()
    draw(root.rng)
    assert not watch.drawn()


def test_one_that_is_made_anew_at_use_or_only_used_before_is_not_named():
    root = Holder(rng=random.Random(7), shuffled=random.Random(7))
    draw(root.shuffled)
    watch = Watch(root)
    root.rng = random.Random(8)
    draw(root.rng)
    assert not watch.drawn()


def test_one_that_came_to_the_worker_in_a_state_of_its_own_is_not_named():
    trainers, workers = Holder(rng=random.Random(7)), Holder(rng=random.Random(8))
    watch = Watch(workers)
    draw(workers.rng)
    assert watch.drawn()
    assert not repeated(watch.drawn(), fingerprints(trainers))


def test_global_generators_and_those_without_state_are_not_named():
    root = Holder(
        python=random.random,
        numpy=numpy.random.mtrand._rand,
        torch=torch.default_generator,
        system=random.SystemRandom(),
    )
    assert not random_objects(root)


def test_a_generator_is_named_once_and_not_its_parts():
    root = Holder(rng=numpy.random.default_rng(0), state=numpy.random.RandomState(0))
    assert [finding.path for finding in suspects(root)] == ["dataset.rng", "dataset.state"]


def test_a_fingerprint_is_the_same_in_any_process():
    root = {kind: make() for kind, make in MAKERS.items()}
    program = (
        "import sys, pickle; from holdfast.audit.generators import fingerprints; "
        "print(fingerprints(pickle.load(sys.stdin.buffer)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(root),
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "1"},
    )
    assert ran.stdout.decode().strip() == str(fingerprints(root))
    assert len(set(fingerprints(root).values())) >= 4  # random.Random(7) and others begin alike, most do not


class OwnBits(random.Random):
    def getstate(self):
        raise AssertionError("code of the data set was run")


def test_the_state_is_read_without_code_of_a_class_that_derives():
    root = Holder(rng=OwnBits(7))
    watch = Watch(root)
    draw(root.rng)
    assert watch.drawn()


class WithoutState(numpy.random.PCG64):
    asked = 0

    @property
    def state(self):
        type(self).asked += 1
        if self.asked == 1:
            raise ValueError("not yet")
        return super().state


def test_of_a_generator_without_a_state_nothing_is_said():
    watch = Watch(Holder(rng=numpy.random.Generator(WithoutState(7))))
    assert not watch.drawn()


# Lists


def test_millions_of_small_objects_are_noted_with_their_size():
    root = Holder(paths=[f"/data/train/{i:07d}.jpg" for i in range(300_000)], few=["x"] * 10)
    (finding,) = large_containers(root)
    assert (finding.path, finding.severity) == ("dataset.paths", Severity.NOTE)
    size = sum(map(sys.getsizeof, root.paths)) + sys.getsizeof(root.paths)
    told = int(finding.why.split("about ")[1].split(" MiB")[0])
    assert told == pytest.approx(size / 2**20, rel=0.15)


def test_an_array_and_a_long_list_of_one_object_are_not_noted():
    assert not large_containers(Holder(array=numpy.zeros(10_000_000), same=[None] * 10_000_000, one=["x"] * 5_000_000))


def test_long_lists_in_a_dict_count_as_a_whole():
    files = {f"class {c}": [f"/data/class {c}/{n:05}.jpg" for n in range(1000)] for c in range(400)}
    (finding,) = large_containers(Holder(files=files))
    assert finding.path == "dataset.files"
    size = sum(sys.getsizeof(names) + sum(map(sys.getsizeof, names)) for names in files.values())
    told = int(finding.why.split("about ")[1].split(" MiB")[0])
    assert told == pytest.approx(size / 2**20, rel=0.15)
    assert not large_containers(Holder(files={name: ["x"] * 100_000 for name in "abc"}))


def test_the_members_of_a_dict_count():
    (finding,) = large_containers(Holder(table={str(i): {"label": i} for i in range(100_000)}))
    assert finding.path == "dataset.table"


# Paths


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.jpg").touch()
    (tmp_path / "train").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_relative_paths_that_lead_somewhere_are_named(here: Path):
    root = Holder(
        root="images",
        samples=[("images/a.jpg", 1), ("images/a.jpg", 2)],
        folder=Path("images"),
        split="train",
        away="images/b.jpg",
        absolute=str(here / "images"),
    )
    assert [finding.path for finding in relative_paths(root)] == [
        "dataset.root",
        "dataset.folder",
        "dataset.samples[0][0]",
        "dataset.samples[1][0]",
    ]
    assert relative_paths(root)[0].fix == "self.root = os.path.abspath('images')"


def test_of_many_relative_paths_the_first_is_named(here: Path):
    (finding,) = relative_paths(Holder(paths=["images/a.jpg"] * 100))
    assert finding.path == "dataset.paths[0]"


@pytest.mark.parametrize("kind", [str, Path])
def test_an_empty_data_set_is_explained_by_its_folder(kind, tmp_path: Path):
    assert kind_of_emptiness(Holder(root=kind(tmp_path))) == f"its folder {tmp_path} is empty"
    missing = tmp_path / "missing"
    assert kind_of_emptiness(Holder(inner=Holder(root=kind(missing)))) == f"{missing} does not exist"
    assert kind_of_emptiness(Holder(pattern=str(missing / "image_*.jpg"))) == f"{missing} does not exist"
    (tmp_path / "list.txt").touch()
    assert kind_of_emptiness(Holder(file=kind(tmp_path / "list.txt"))) == f"its file {tmp_path / 'list.txt'} is empty"


def test_nothing_raises_where_the_folder_we_are_in_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert "cannot be read" in kind_of_emptiness(Holder(root="images"))
    assert not relative_paths(Holder(root="images", folder=object.__new__(type(tmp_path))))


def test_a_word_that_only_ends_like_a_place_explains_nothing(here: Path):
    assert kind_of_emptiness(Holder(profile="default")) == ""


def test_an_empty_mount_is_called_one(tmp_path: Path):
    if subprocess.run(["mount", "-t", "tmpfs", "none", tmp_path], capture_output=True, check=False).returncode:
        pytest.skip("may not mount here")
    try:
        assert kind_of_emptiness(Holder(root=tmp_path)) == f"its folder {tmp_path} is an empty mount"
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_folder_with_files_or_a_data_set_without_folder_explains_nothing(here: Path):
    assert kind_of_emptiness(Holder(root=here, split="train", path="s3://bucket/train", samples=[])) == ""
    assert kind_of_emptiness(object()) == ""
