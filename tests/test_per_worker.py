"""What each worker makes for itself: once in its life, closed at its end, never shared."""

from __future__ import annotations

import copy
import functools
import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from torch.utils.data import Dataset, IterableDataset

from holdfast import DataLoader, SharedHandle, get_worker_info
from holdfast._worker import life
from holdfast.recipe import look_into, per_worker, unwrap
from holdfast.testing import DiesAt, Faulty

RECORD = 16


class Diary:
    """Who made and closed what, in a file that outlives everybody: a line is one write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def note(self, what: str) -> None:
        with open(self.path, "a") as file:
            file.write(f"{what} {os.getpid()} {threading.get_ident()}\n")

    def who(self, what: str) -> list[str]:
        return sorted(line[len(what) + 1 :] for line in self.path.read_text().splitlines() if line.startswith(what))


@pytest.fixture
def diary(tmp_path):
    return Diary(tmp_path / "diary")


class Handle:
    """Something that must not be shared, nor pickled."""

    def __init__(self, diary: Diary) -> None:
        self.diary = diary
        diary.note("made")

    def number(self) -> int:
        self.diary.note("used")
        return threading.get_ident() if get_worker_info() is None else os.getpid()

    def close(self) -> None:
        self.diary.note("closed")

    def __reduce__(self):
        raise TypeError("a handle is not pickled")


class Uses(Dataset):
    def __init__(self, handle, size: int = 16) -> None:
        self.handle, self.size = handle, size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> int:
        self.handle.number()
        return index


def loaded(dataset, **how) -> list[int]:
    loader = DataLoader(dataset, **{"batch_size": 2, "num_workers": 2, "timeout": 60, **how})
    return [number for batch in loader for number in batch.tolist()]


HOW = [*({"start": start} for start in ("zygote", "standby", "fork", "spawn")), {"workers": "thread"}]


@pytest.mark.parametrize("how", HOW, ids=str)
def test_each_worker_makes_its_own_once_and_closes_it_at_its_end(diary, how):
    assert loaded(Uses(per_worker(Handle, diary)), **how) == list(range(16))
    assert diary.who("made") == diary.who("closed") == sorted(set(diary.who("used")))
    assert len(diary.who("used")) == 16
    assert "thread" in how.values() or not any(str(os.getpid()) in line for line in diary.who("made"))


def test_a_life_that_is_killed_closes_nothing_and_the_next_makes_its_own(diary):
    assert loaded(Faulty(Uses(per_worker(Handle, diary)), DiesAt(7, once=True)), num_workers=1) == list(range(16))
    made, closed = diary.who("made"), diary.who("closed")
    assert (len(made), len(closed)) == (2, 1)
    assert set(closed) < set(made)


def test_persistent_workers_keep_theirs_over_epochs(diary):
    loader = DataLoader(Uses(per_worker(Handle, diary)), num_workers=2, persistent_workers=True, timeout=60)
    assert [len(list(loader)) for _ in range(3)] == [16, 16, 16]
    assert (len(diary.who("made")), diary.who("closed")) == (2, [])
    loader._iterator = None
    assert diary.who("made") == diary.who("closed")


# -- F43: a handle that two workers share


class Records(Dataset):
    """Two readers meet between seek and read."""

    def __init__(self, file, meet) -> None:
        self.file, self.meet = file, meet

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> int:
        self.file.seek(index * RECORD)
        self.meet.wait(30)
        record = self.file.read(RECORD)
        self.meet.wait(30)
        return int(record or -1)


@pytest.mark.parametrize("own", [False, True])
def test_records_are_right_through_a_handle_of_ones_own_and_wrong_through_an_inherited_one(tmp_path, own):
    path = tmp_path / "records"
    path.write_text("".join(f"{number:<{RECORD}d}" for number in range(4)))
    inherited = open(path, "rb", buffering=0)  # noqa: SIM115
    file = per_worker(open, path, "rb", buffering=0) if own else inherited
    dataset = Records(file, multiprocessing.get_context("fork").Barrier(2))
    with nullcontext() if own else pytest.warns(SharedHandle, match=r"dataset\.file"):
        right = loaded(dataset, batch_size=1, start="fork", prefetch_factor=1) == [0, 1]
    inherited.close()
    assert right == own


# -- a whole data set


class Numbers(Handle, Dataset):
    def __init__(self, diary: Diary, size: int) -> None:
        super().__init__(diary)
        self.size, self.first = size, 0

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> int:
        return self.first + index


class InBatches(Numbers):
    def __getitems__(self, indices: list[int]) -> list[int]:
        return [100 + index for index in indices]


class Stream(Handle, IterableDataset):
    def __init__(self, diary: Diary, size: int) -> None:
        super().__init__(diary)
        self.size = size

    def __iter__(self):
        info = get_worker_info()
        return iter(range(info.id, self.size, info.num_workers) if info else range(self.size))


@pytest.mark.parametrize("how", [{"start": "zygote"}, {"start": "fork"}, {"workers": "thread"}], ids=str)
def test_of_a_data_set_only_the_recipe_travels(diary, how):
    assert loaded(per_worker(Numbers, diary, 16), **how) == list(range(16))
    assert len(diary.who("made")) == len(diary.who("closed")) == 3  # one of them to see how long it is


def test_with_its_length_the_trainer_makes_none(diary):
    dataset = per_worker(Numbers, diary, 16, length=16)
    assert sorted(loaded(dataset, shuffle=True)) == list(range(16))
    assert len(diary.who("made")) == 2


def test_without_workers_the_trainer_has_its_own(diary):
    dataset = per_worker(Numbers, diary, 16)
    assert loaded(dataset, num_workers=0, timeout=0) == loaded(dataset, num_workers=0, timeout=0) == list(range(16))
    assert len(diary.who("made")) - len(diary.who("closed")) == 1  # over both epochs
    del dataset
    gc.collect()
    assert diary.who("made") == diary.who("closed")


def test_a_data_set_that_loads_whole_batches_still_does(diary):
    assert hasattr(per_worker(InBatches, diary, 4), "__getitems__")
    assert not hasattr(per_worker(Numbers, diary, 4), "__getitems__")
    assert loaded(per_worker(InBatches, diary, 4)) == [100, 101, 102, 103]


def say_nothing(diary: Diary, size: int):
    return Stream(diary, size)


def say_so(diary: Diary, size: int) -> IterableDataset[int]:
    return Stream(diary, size)


@pytest.mark.parametrize("factory", [Stream, say_so, functools.partial(Stream)])
def test_an_iterable_data_set_is_one_if_the_factory_says_so(diary, factory):
    dataset = per_worker(factory, diary, 16)
    assert isinstance(dataset, IterableDataset)
    assert sorted(loaded(dataset)) == list(range(16))
    assert len(diary.who("made")) == 2  # none to see what it is


def test_a_data_set_without_a_length_is_not_made_to_be_asked_for_it(diary):
    with pytest.raises(TypeError, match=r"'Stream' has no len\(\)"):
        len(per_worker(Stream, diary, 16))
    assert not diary.who("made")
    with pytest.raises(TypeError, match=r"has no len\(\)"):
        len(per_worker(say_so, diary, 16))
    assert diary.who("made") == diary.who("closed")


def test_an_iterable_data_set_is_one_if_the_user_says_so_or_once_it_was_looked_at(diary):
    assert isinstance(per_worker(say_nothing, diary, 16, iterable=True), IterableDataset)
    dataset = per_worker(say_nothing, diary, 16)
    assert not isinstance(dataset, IterableDataset)
    look_into(dataset)
    assert isinstance(dataset, IterableDataset)
    assert diary.who("made") == diary.who("closed")
    assert sorted(loaded(dataset)) == list(range(16))
    assert isinstance(copy.deepcopy(dataset), IterableDataset)


def test_an_iterable_data_set_that_is_taken_for_map_style_is_an_error_with_the_way_out(diary):
    with pytest.raises(TypeError, match=r"per_worker\(say_nothing, .* is an IterableDataset: .*iterable=True"):
        len(per_worker(say_nothing, diary, 16))


def test_torchs_own_loader_takes_it_too(diary):
    loader = torch.utils.data.DataLoader(per_worker(Numbers, diary, 8), num_workers=2, multiprocessing_context="fork")
    assert torch.cat(list(loader)).tolist() == list(range(8))
    assert diary.who("made") == diary.who("closed")
    stream = torch.utils.data.DataLoader(per_worker(Stream, diary, 8), num_workers=2, multiprocessing_context="fork")
    assert sorted(torch.cat(list(stream)).tolist()) == list(range(8))


def begin_at_100(seat: int) -> None:
    get_worker_info().dataset.first = 100


def test_attributes_are_set_in_workers_and_refused_where_workers_would_not_see_them(diary):
    dataset = per_worker(Numbers, diary, 4)
    with pytest.raises(AttributeError, match="each worker makes its own"):
        dataset.first = 100
    assert loaded(dataset, worker_init_fn=begin_at_100) == [100, 101, 102, 103]


# -- like the thing itself


def test_it_is_used_like_the_thing_it_stands_for(tmp_path):
    (tmp_path / "text").write_text("one\ntwo\n")
    file = per_worker(open, tmp_path / "text")
    assert (next(file), file.read(2), file.seek(0), bool(file)) == ("one\n", "tw", 0, True)
    assert list(file) == ["one\n", "two\n"]
    with file as entered:
        assert entered is unwrap(file)
    assert file.closed

    table = per_worker(dict, a=1)
    table["b"] = 2
    del table["a"]
    assert (table["b"], "b" in table, "a" in table, len(table), dict(table.items())) == (2, True, False, 1, {"b": 2})
    assert per_worker(functools.partial, max, 3)(2) == 3
    assert not per_worker(list)


def test_a_recipe_is_shown_pickled_and_copied_without_following_it(diary):
    thing = per_worker(Handle, diary, close=Handle.close)
    for again in (thing, copy.copy(thing), copy.deepcopy(thing), pickle.loads(pickle.dumps(thing))):
        assert repr(again).startswith("per_worker(Handle, <")
    assert not diary.who("made")
    assert repr(per_worker(open, "/data/x.bin", mode="rb")) == "per_worker(open, '/data/x.bin', mode='rb')"


@pytest.mark.parametrize("workers", [0, 1])
def test_a_factory_that_fails_raises_its_own_error_with_the_recipe(tmp_path, workers):
    missing = str(tmp_path / "missing")
    loader = DataLoader(Uses(per_worker(open, missing, "rb")), num_workers=workers)
    with pytest.raises(FileNotFoundError) as failure:
        list(loader)
    assert any(note.startswith("in per_worker(open, ") for note in failure.value.__notes__)
    assert failure.value.filename == missing


def test_a_factory_that_failed_is_tried_again(tmp_path):
    file = per_worker(open, tmp_path / "late", "rb")
    with pytest.raises(FileNotFoundError):
        file.read()
    (tmp_path / "late").write_bytes(b"1")
    assert file.read() == b"1"


def takes_length(length: int = 3) -> list[int]:
    return [0] * length


def test_an_option_is_not_taken_from_a_factory_that_has_it_too():
    with pytest.raises(ValueError, match=r"length= is an option of per_worker, and an argument of takes_length"):
        per_worker(takes_length, length=5)
    assert len(per_worker(functools.partial(takes_length, 5))) == 5


# -- lives


def test_threads_of_one_life_share_what_the_first_of_them_makes(diary):
    gate, thing = threading.Barrier(4), per_worker(Handle, diary)

    def use() -> None:
        gate.wait()
        thing.number()

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(diary.who("used")), len(diary.who("made"))) == (4, 1)


def test_what_nobody_needs_any_more_is_closed(diary):
    thing = per_worker(Handle, diary, close=lambda handle: handle.diary.note("shut"))
    thing.number()
    assert not diary.who("shut")
    del thing
    gc.collect()
    assert diary.who("made") == diary.who("shut")
    assert not diary.who("closed")


def test_at_the_end_of_a_life_the_latest_is_closed_first_and_an_error_is_printed(capsys):
    closed = []
    with life.of_this_thread():
        life.at_end(lambda: closed.append("first"))
        life.at_end(lambda: 1 / 0)
        life.at_end(lambda: closed.append("last"))
    vars(life._here).clear()
    assert closed == ["last", "first"]
    assert "ZeroDivisionError" in capsys.readouterr().err


def use_and_end(thing) -> None:
    thing.number()


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_children_of_multiprocessing_have_lives_too(diary, start):
    thing = per_worker(Handle, diary)
    thing.number()
    process = multiprocessing.get_context(start).Process(target=use_and_end, args=(thing,))
    process.start()
    process.join()
    process.close()
    assert (len(diary.who("made")), len(diary.who("closed"))) == (2, 1)
    assert diary.who("made")[0].split()[0] != diary.who("made")[1].split()[0]


TRAINER = """
    import multiprocessing.util, os, sys
    from holdfast.recipe import per_worker

    file = per_worker(open, sys.argv[1], "w")
    file.write("by the parent")          # still in its buffer
    if not os.fork():
        assert file.closed is False      # one of its own, of which the parent knows nothing
        del file
        multiprocessing.util._finalizer_registry.clear()  # as it does in its own children
        os._exit(0)
    os.wait()
"""


def test_a_fork_leaves_what_its_parent_made_alone_and_the_end_of_the_program_closes_it(tmp_path):
    line = [sys.executable, "-W", "error", "-c", textwrap.dedent(TRAINER), str(tmp_path / "file")]
    done = subprocess.run(line, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "file").read_text() == "by the parent"
