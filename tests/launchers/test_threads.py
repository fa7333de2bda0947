"""Workers that are threads of the trainer."""

from __future__ import annotations

import mmap
import random
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy
import pytest
import torch
from samples import SAMPLES, DrawsItsOwn, Plain, Stream
from torch.utils.data import default_collate
from torch.utils.data._utils.collate import default_collate_fn_map

import holdfast
from holdfast import DataLoader, LoaderTimeout, WorkerDied
from holdfast._core.events import Worker
from holdfast._engine.lines import Bell, ThreadLine
from holdfast._engine.roster import Roster
from holdfast._system.private_memory import private_memory
from holdfast._transport.messages import Begin, Close, Load, Ready
from holdfast.testing import Faulty, QuitsAt, RaisesAt


def threads(dataset, **options) -> DataLoader:
    options = {"batch_size": 4, "num_workers": 2, "timeout": 30, **options}
    return DataLoader(dataset, workers="thread", generator=torch.Generator().manual_seed(7), **options)


@pytest.mark.parametrize("workers", [2, 3])
def test_a_workers_own_generators_give_the_same_stream_for_any_number_of_threads(workers):
    alone = list(threads(DrawsItsOwn(), num_workers=1))
    assert all(map(torch.equal, threads(DrawsItsOwn(), num_workers=workers), alone))
    assert len({float(batch[0, 1]) for batch in alone}) == len(alone)


def test_the_trainers_globals_are_left_alone():
    def globals_now():
        return (
            torch.get_rng_state().tolist(),
            str(numpy.random.get_state()),
            random.getstate(),
            torch.get_num_threads(),
            dict(default_collate_fn_map),
            torch.utils.data.get_worker_info(),
            holdfast.get_worker_info(),
        )

    before = globals_now()
    list(threads(DrawsItsOwn()))
    assert globals_now() == before


def test_a_thread_knows_who_it_is_and_has_the_trainers_dataset():
    seen = {}

    def init(seat):
        seen[seat] = holdfast.get_worker_info(), threading.current_thread()

    dataset = Plain()
    list(threads(dataset, worker_init_fn=init))
    assert sorted(seen) == [0, 1]
    for seat, (info, thread) in seen.items():
        assert (info.id, info.num_workers, info.worker_method) == (seat, 2, "thread")
        assert info.dataset is dataset
        assert thread is not threading.main_thread()


def test_batches_are_handed_over_and_not_copied():
    made = []

    def collate(samples):
        made.append((default_collate(samples), iter(samples)))  # an iterator of a list would not come back the same
        return made[-1]

    batches = list(threads(Plain(), num_workers=1, collate_fn=collate))
    assert all(got is given for got, given in zip(batches, made, strict=True))


def test_an_exception_arrives_as_itself_with_a_note():
    error = KeyError("rotten")
    batches = iter(threads(Faulty(Plain(), RaisesAt(5, error))))
    next(batches)
    with pytest.raises(KeyError) as raised:
        next(batches)
    assert raised.value is error
    assert "sample 5 of batch 1" in error.__notes__[0]
    error.__traceback__ = None  # it holds the frames of this test


def test_an_init_function_that_fails_is_told_at_once():
    def init(seat):
        raise ValueError("no disk")

    with pytest.raises(ValueError, match="no disk"):
        list(threads(Plain(), worker_init_fn=init))


def test_a_thread_that_quits_is_replaced():
    loader = threads(Faulty(Plain(), QuitsAt(5, 3, once=True)), num_workers=1)
    assert [int(index) for batch in loader for index in batch[:, 0]] == list(range(SAMPLES))
    assert loader.restarts == 1


def test_a_sample_that_always_ends_its_thread_is_named():
    batches = iter(threads(Faulty(Plain(), QuitsAt(1, 3))))
    with pytest.raises(WorkerDied) as died:
        next(batches)
    assert (died.value.sample, died.value.verdict.status) == (1, 3)
    assert "SystemExit" in died.value.verdict.stack
    assert next(batches)[0, 0] == 4


def test_an_iterable_dataset_is_iterated_by_each_thread():
    rows = torch.cat(list(threads(Stream())))
    assert sorted(rows[:, 0].tolist()) == list(range(SAMPLES))


def test_persistent_threads_serve_the_next_epoch():
    loader = threads(DrawsItsOwn(), persistent_workers=True)
    first = iter(loader)
    alive = first._workers
    list(first)
    assert len(list(loader)) == SAMPLES // 4
    assert loader._iterator._workers == alive
    loader._iterator = None


class Slow(Plain):
    def __init__(self):
        self.begun, self.go_on, self.loaded = threading.Event(), threading.Event(), []

    def __getitem__(self, index):
        self.loaded.append(index)
        self.begun.set()
        self.go_on.wait()
        return index


def test_closing_does_not_wait_for_a_slow_sample_and_no_other_is_loaded():
    dataset = Slow()
    batches = iter(threads(dataset, num_workers=1, timeout=0.1))
    worker = batches._workers[0]
    while not dataset.begun.is_set():
        with pytest.raises(LoaderTimeout):
            next(batches)
    batches._shutdown_workers()
    assert worker._thread.is_alive()
    dataset.go_on.set()
    worker._thread.join(10)
    assert not worker._thread.is_alive()
    assert dataset.loaded == [0]


@pytest.fixture(params=[1 << 20, 32 << 20], ids=["moved", "stacked"])
def moved_from(request, monkeypatch):
    """Samples are moved to the memory of their batch one by one, which is done for larger batches only, or together."""
    monkeypatch.setattr("holdfast._worker.thread.SPACIOUS", request.param)


class Large(torch.utils.data.Dataset):
    """A quarter of a MiB each, filled with its index."""

    def __init__(self, kind):
        self.kind = kind

    def __len__(self):
        return 64

    def __getitem__(self, index):
        sample = torch.full((1 << 16,), float(index))
        return sample if self.kind == "tensor" else sample.numpy()


@pytest.mark.usefixtures("moved_from")
@pytest.mark.parametrize("kind", ["tensor", "array"])
@pytest.mark.parametrize("taught", [False, True])
def test_the_memory_of_large_batches_that_are_gone_is_used_again(kind, taught, monkeypatch):
    """Also in programs that import a library which teaches torch to collate types of its own."""
    mappings, got = [], []

    def mapped(size: int) -> mmap.mmap:
        mappings.append(private_memory(size))
        return mappings[-1]

    monkeypatch.setattr("holdfast._worker.warm.private_memory", mapped)
    if taught:
        monkeypatch.setitem(default_collate_fn_map, Large, lambda batch, *, collate_fn_map=None: batch)
    for batch in threads(Large(kind), batch_size=8, num_workers=1):  # of two, one may run ahead to the end
        got += batch[:, 0].tolist()
        del batch
    assert got == list(range(64))
    assert 1 <= len(mappings) < 8


@pytest.mark.usefixtures("moved_from")
@pytest.mark.parametrize("look", [lambda batch: batch, lambda batch: batch[3:4, 5:9], lambda batch: batch[2].numpy()])
def test_large_batches_that_are_looked_at_keep_their_memory(look):
    kept = [look(batch) for batch in threads(Large("tensor"), batch_size=8)]
    for number, values in enumerate(kept):
        assert 8 * number <= values.min() <= values.max() < 8 * number + 8


@pytest.mark.usefixtures("moved_from")
def test_samples_of_another_size_take_no_memory_that_is_too_small():
    class Growing(Large):
        def __getitem__(self, index):
            return torch.full(((index // 8 + 1) << 15,), float(index))

    for number, batch in enumerate(threads(Growing("tensor"), batch_size=8)):
        assert batch.shape == (8, (number + 1) << 15)
        assert batch[:, -1].tolist() == list(range(8 * number, 8 * number + 8))


def test_generators_that_are_kept_are_those_of_every_batch():
    class Keeps(Plain):
        rng = None

        def __getitem__(self, index):
            self.rng = self.rng or {}
            mine = self.rng.setdefault(threading.get_ident(), holdfast.get_worker_info().rng)
            return torch.tensor([mine.random_generator.random(), mine.numpy_generator.random()], dtype=torch.float64)

    alone = list(threads(Keeps(), num_workers=1))
    assert all(map(torch.equal, threads(Keeps(), num_workers=3), alone))
    assert len({float(batch[0, 0]) for batch in alone}) == len(alone)


def test_a_bell_is_heard_once_and_only_by_who_expects_it():
    bell = Bell()
    bell.ring()
    assert not bell.wait(0)
    bell.expect()
    for _ in range(2):
        bell.ring()
    assert bell.wait(0)
    assert not bell.wait(0)


def test_a_ring_that_came_too_late_is_not_taken_for_a_new_one():
    bell = Bell()
    bell.expect()
    bell.ring()
    bell.expect()
    assert not bell.wait(0)


def rosters(*lines: ThreadLine) -> Roster:
    roster = Roster()
    for seat, line in enumerate(lines):
        process = SimpleNamespace(sentinel=1000 + seat, stderr=None)
        roster.add(Worker(seat, 0), SimpleNamespace(channel=line, process=process))  # type: ignore[arg-type]
    return roster


def test_who_waits_is_told_who_has_spoken_and_then_who_has_ended():
    talker, other = ThreadLine(), ThreadLine()
    roster = rosters(talker, other)
    assert roster.wait(0) == []
    talker.say(Ready())
    other.hang_up()
    assert roster.wait(0) == [talker.fileno()]
    assert talker.hear() == [Ready()]
    assert roster.wait(0) == [1001]


@pytest.mark.parametrize("act", [lambda line: line.say(Ready()), ThreadLine.hang_up], ids=["say", "hang up"])
def test_who_waits_is_woken(act):
    line, found = ThreadLine(), []
    roster = rosters(line)
    waiting = threading.Thread(target=lambda: found.extend(roster.wait(20)))
    waiting.start()
    while not roster._exchange.bell._awaited:
        pass
    act(line)
    waiting.join(10)
    assert found in ([line.fileno()], [1000])


def hurried(*, brisk: bool = True, seconds: float = -60.0) -> tuple[Roster, ThreadLine]:
    """A trainer that came back after so long (at once, however busy the machine is), and a thread that waits, whose
    last batch was brisk."""
    line = ThreadLine()
    roster = rosters(line)
    line.brisk = brisk
    roster._exchange._handed_over_at = time.monotonic() - seconds
    roster.asked()
    line._called.expect()
    return roster, line


def test_a_thread_is_not_woken_for_a_brisk_batch_before_the_trainer_waits():
    roster, line = hurried()
    line.tell(Load(0, [0], ()))
    assert not line._called.wait(0)
    assert roster.wait(0) == []
    assert line._called.wait(0)


@pytest.mark.parametrize("why_not", [{"brisk": False}, {"seconds": 0.01}], ids=["a longer batch", "a busy trainer"])
def test_a_thread_is_woken_at_once_if_there_is_something_to_gain(why_not):
    roster, line = hurried(**why_not)
    line.tell(Load(0, [0], ()))
    assert line._called.wait(0)
    roster._exchange.bell.expect()
    line.say(Ready())
    assert roster._exchange.bell.wait(0)


def test_a_thread_is_woken_at_once_for_anything_but_a_batch():
    _, line = hurried()
    line.tell(Close())
    assert line._called.wait(0)


def test_the_first_batches_of_an_epoch_are_loaded_before_the_trainer_waits_for_them():
    _, line = hurried()
    line.tell(Begin(0, 0, None))
    assert line._called.wait(0)
    line._called.expect()
    line.tell(Load(0, [0], ()))
    assert line._called.wait(0)


def test_a_thread_that_has_more_to_do_rings_when_all_is_done():
    roster, line = hurried()
    for batch in range(2):
        line.tell(Load(batch, [0], ()))
    roster._exchange.bell.expect()
    for rung in (False, True):
        line.next_message()
        line.say(Ready())
        assert roster._exchange.bell.wait(0) is rung


def test_a_batch_is_seen_soon_though_its_thread_did_not_ring_and_hangs_in_the_next():
    roster, line = hurried()
    line.tell(Load(0, [0], ()))
    found: list[int] = []
    waiting = threading.Thread(target=lambda: found.extend(roster.wait(60)))
    waiting.start()
    while not roster._exchange.bell._awaited:
        pass
    line.say(Ready())
    waiting.join(10)
    assert found == [line.fileno()]


def test_a_batch_is_there_though_its_thread_is_busy_with_the_next():
    go_on, in_time = threading.Event(), []

    class SlowSecond(Plain):
        def __getitem__(self, index):
            if index == 4:
                in_time.append(go_on.wait(20))
            return super().__getitem__(index)

    batches = iter(threads(SlowSecond(), num_workers=1))
    next(batches)
    go_on.set()
    assert len(list(batches)) == -(-SAMPLES // 4) - 1
    assert in_time == [True]


def test_large_batches_and_their_samples_have_no_pages_made_anew():
    """In a program of its own: the allocator of this one has seen all kinds of memory come and go."""
    program = """
import resource, torch
from holdfast import DataLoader
class Pictures:
    def __len__(self):
        return 640
    def __getitem__(self, index):
        return torch.full((150_000,), float(index))
loader = DataLoader(Pictures(), 16, num_workers=2, workers="thread", persistent_workers=True)
for epoch in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for batch in loader:
        pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / len(loader))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    pages = 16 * 150_000 * 4 / 4096
    assert float(ran.stdout) < pages / 8


def test_large_batches_that_are_kept_share_their_maps():
    """A process has 65,530 at most."""
    program = """
import torch
from holdfast import DataLoader
class Pictures:
    def __len__(self):
        return 1200
    def __getitem__(self, index):
        return torch.full((100_000,), float(index))
def maps():
    with open("/proc/self/maps") as file:
        return len(file.readlines())
loader = DataLoader(Pictures(), 4, num_workers=2, workers="thread", persistent_workers=True)
list(loader)
before = maps()
kept = list(loader)
print(maps() - before, len(kept))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    more, kept = map(int, ran.stdout.split())
    assert kept == 300
    assert more < kept / 4
