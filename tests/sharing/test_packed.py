"""Long lists, dicts and strings: packed, and read as before."""

from __future__ import annotations

import copy
import datetime
import multiprocessing
import pathlib
import pickle
import random
from typing import NamedTuple

import numpy
import pytest
import receivers
import torch
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import CannotShare
from holdfast.sharing import PackedDict, PackedList, PackedText, share

pytestmark = pytest.mark.once
MANY = 3000


class Record(NamedTuple):
    path: str
    label: int


LISTS = {
    "text": [f"/data/{i}.jpg" for i in range(MANY)],
    "odd text": ["", "ä", "\ud800", "🙂", "x" * 1000] * (MANY // 5),
    "bytes": [bytes([i % 256]) * (i % 7) for i in range(MANY)],
    "integers": [i - 1500 for i in range(MANY)],
    "large integers": [2**i for i in range(1024)],
    "floats": [i / 7 for i in range(MANY)],
    "booleans": [i % 3 == 0 for i in range(MANY)],
    "mixed": [None, 1, "a", 2.5, True] * (MANY // 5),
    "pairs": [(f"/data/{i}", i) for i in range(MANY)],
    "dicts": [{"path": f"{i}", "boxes": [[1, 2], [3, i]]} for i in range(MANY)],
    "paths": [pathlib.Path(f"/data/{i}") for i in range(MANY)],
    "dates": [datetime.date.fromordinal(i + 1) for i in range(MANY)],
    "records": [Record(f"{i}", i) for i in range(MANY)],
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_reads_as_before(kind, name):
    values = LISTS[name]
    x = share(values)
    assert isinstance(x, PackedList)
    assert len(x) == len(values)
    assert list(x) == values
    assert x == values
    assert values == x
    assert [type(x[i]) for i in (0, -1)] == [type(values[i]) for i in (0, -1)]
    assert x[7:50:3] == values[7:50:3]
    assert list(reversed(x)) == values[::-1]
    assert values[9] in x
    assert x.index(values[3]) == values.index(values[3])
    assert x.count(values[3]) == values.count(values[3])
    assert x + values == values + x == [*values, *values]
    assert x[numpy.int64(5)] == x[torch.tensor(5)] == values[5]
    for wrong in (len(values), -len(values) - 1):
        with pytest.raises(IndexError):
            x[wrong]
    with pytest.raises(TypeError):
        x[0] = 1
    with pytest.raises(AttributeError):
        x.append(1)
    assert pickle.loads(pickle.dumps(x[5:])) == values[5:]
    assert copy.deepcopy(x) is x
    assert random.Random(1).sample(x, 5) == random.Random(1).sample(values, 5)


DICTS = {
    "text": {f"/data/{i}": i for i in range(MANY)},
    "integers": {i * 1000: f"{i}" for i in range(-1500, 1500)},
    "pairs": {(f"{i % 50}", i): [i] for i in range(MANY)},
    "mixed": {**{i: i for i in range(MANY)}, "a": 1, None: 2, 2.5: 3, b"a": 4, (1, ("x",)): 5},
}


@pytest.mark.parametrize("name", DICTS)
def test_a_dict_reads_as_before(kind, name):
    values = DICTS[name]
    x = share(values)
    assert isinstance(x, PackedDict)
    assert x == values
    assert list(x) == list(values)
    assert list(x.items()) == list(values.items())
    assert list(x.values()) == list(values.values())
    assert all(x[key] == value and key in x for key, value in values.items())
    assert x.get("nothing") is None
    for missing in ("nothing", -7.5, ("x",), object()):
        assert missing not in x
        with pytest.raises(KeyError):
            x[missing]
    with pytest.raises(TypeError, match="unhashable"):
        x[[1]]
    with pytest.raises(TypeError):
        x["new"] = 1
    assert pickle.loads(pickle.dumps(x)) == values


def test_equal_keys_of_other_types_find_the_same():
    x = share({i: i for i in range(MANY)})
    assert x[5.0] == x[numpy.int64(5)] == x[numpy.float32(5)] == 5
    assert x[True] == 1
    assert share({f"{i}": i for i in range(MANY)})[numpy.str_("7")] == 7


def test_another_process_with_other_hashes_finds_every_key():
    x = share(DICTS["text"])
    assert receivers.in_new_interpreter(x, "print(sum(x[f'/data/{i}'] for i in range(3000)))") == str(sum(range(MANY)))


@given(
    st.dictionaries(st.text() | st.integers() | st.binary() | st.floats(allow_nan=False) | st.booleans(), st.integers())
)
def test_any_dict_packs(values):
    padded = {**{("padding", i): i for i in range(1024)}, **values}
    assert share(padded) == padded


TEXTS = {
    "latin": "héllo " * 20000,
    "wide": "日本語" * 30000,
    "wider": "🙂a" * 40000,
    "surrogates": "\ud83d\ude00" * 40000,
}


@pytest.mark.parametrize("name", [*TEXTS, "bytes"])
def test_a_long_string_reads_as_before(kind, name):
    value = TEXTS.get(name) or bytes(range(256)) * 300
    x = share(value)
    assert isinstance(x, PackedText)
    assert len(x) == len(value)
    assert x == value
    assert x[17] == value[17]
    assert x[-1] == value[-1]
    for part in (
        slice(5, 100),
        slice(-10, None),
        slice(None, None, 7),
        slice(9, 3),
        slice(10**6, None),
        slice(None, None, -1),
    ):
        assert x[part] == value[part]
    assert value[7:30] in x
    assert hash(x) == hash(value)
    assert pickle.loads(pickle.dumps(x)) == value
    assert (str(x) if name != "bytes" else bytes(x)) == value
    with pytest.raises(IndexError):
        x[len(value)]


def test_an_element_that_cannot_be_packed_is_named():
    with pytest.raises(CannotShare, match=r"x\['a'\] \(list\) .*\n.*an element cannot be pickled"):
        share({"a": [(lambda: 1,) for _ in range(MANY)]})


def test_long_lists_of_arrays_stay_lists_of_shared_arrays():
    x = share([numpy.full(2, i) for i in range(1500)])
    assert type(x) is list
    pickle.loads(pickle.dumps(x[7]))[0] = 99
    assert x[7].tolist() == [99, 7]
    pairs = share([("a", torch.zeros(1)) for _ in range(1500)])
    assert pairs[3][1].is_shared()


def costs_of(paths: int, workers: int = 2) -> tuple[int, int]:
    """The size of one copy, and what all processes together have more of in their memory, each having read it all."""
    x = share([f"/data/imagenet/train/n{i % 1000:08d}/n{i % 1000:08d}_{i}.JPEG" for i in range(paths)])
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(workers), context.SimpleQueue()
    started = [context.Process(target=receivers.read_all, args=(x, barrier, answers)) for _ in range(workers)]
    for process in started:
        process.start()
    grown = sum(answers.get() for _ in started)
    for process in started:
        process.join()
        process.close()
    answers.close()
    return x._memory.size, grown


@pytest.mark.slow
def test_workers_that_read_a_long_list_have_one_copy_together():
    size, grown = costs_of(200_000)
    assert grown <= 1.1 * size


@pytest.mark.slow
def test_three_million_paths():
    size, grown = costs_of(3_000_000)
    assert grown <= 1.1 * size


@pytest.mark.slow
def test_workers_that_run_a_model_have_one_copy_together():
    model = share(torch.nn.Sequential(*[torch.nn.Linear(2000, 2000) for _ in range(4)]))
    size = sum(tensor.nbytes for tensor in model.parameters())
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(2), context.SimpleQueue()
    started = [context.Process(target=receivers.sum_all, args=(model, barrier, answers)) for _ in range(2)]
    for process in started:
        process.start()
    grown = sum(answers.get() for _ in started)
    for process in started:
        process.join()
        process.close()
    answers.close()
    assert grown <= 1.1 * size
