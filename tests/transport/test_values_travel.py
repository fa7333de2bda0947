"""Everything that is no plain tensor, through the arena in one process and once through real workers."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import io
import threading
from typing import Any, NamedTuple

import numpy
import pytest
import torch
from tensordict import TensorDict

from holdfast import CannotSend, DataLoader

RECORD = numpy.dtype([("id", "i4"), ("score", "f8"), ("box", "i2", (4,))])
ARRAYS = {
    **{kind: numpy.arange(3000).astype(kind) for kind in "?bBhHiIlLqQefdgFDG"},
    "big-endian": numpy.arange(3000, dtype=">i4"),
    "datetime": numpy.arange("2020-01-01", "2028-01-01", dtype="M8[D]"),
    "timedelta": numpy.arange(3000, dtype="m8[ms]"),
    "text": numpy.array(["ab", "c", "déf"] * 1000),
    "bytes": numpy.array([b"ab", b"c"] * 1000),
    "void": numpy.frombuffer(bytes(range(250)) * 60, dtype="V5"),
    "structured": numpy.array([(i, i / 3, [i] * 4) for i in range(500)], dtype=RECORD),
    "fortran": numpy.asfortranarray(numpy.arange(3000.0).reshape(60, 50)),
    "reversed": numpy.arange(3000)[::-1],
    "strided": numpy.arange(6000).reshape(60, 100)[::2, 1::3],
    "broadcast": numpy.broadcast_to(numpy.arange(50), (60, 50)),
    "empty": numpy.empty((3, 0, 5), "f4"),
    "zero-dimensional": numpy.array(3.5),
    "one": numpy.arange(1),
    "read-only": numpy.frombuffer(bytes(4000), "i4"),
    "objects": numpy.array([{"a": 1}, None, "x", 3], dtype=object),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_keep_dtype_shape_order_and_values(carry, name):
    source = ARRAYS[name]
    for _ in range(2):
        made = carry([source])[0]
        assert type(made) is numpy.ndarray
        assert (made.dtype, made.shape) == (source.dtype, source.shape)
        assert made.tobytes() == source.tobytes() if name != "objects" else made.tolist() == source.tolist()
        assert made.flags.writeable
        assert made.flags.f_contiguous or not source.flags.f_contiguous


def test_kinds_of_array_stay_what_they_are(carry, tmp_path):
    masked = numpy.ma.masked_array(numpy.arange(3000.0), mask=numpy.arange(3000) % 2 == 0)
    made = carry(masked)
    assert type(made) is numpy.ma.MaskedArray
    assert (made.mask == masked.mask).all()
    assert (made.data == masked.data).all()
    mapped = numpy.memmap(tmp_path / "x", dtype="f4", mode="w+", shape=(3000,))
    mapped[:] = numpy.arange(3000)
    assert (carry(mapped) == mapped).all()
    records = numpy.rec.array([(1, 2.0), (3, 4.0)], dtype=[("a", "i4"), ("b", "f8")])
    assert carry(records).b.tolist() == [2.0, 4.0]


def test_an_array_is_not_shared_with_its_like(carry):
    first, second = carry([numpy.zeros(3000), numpy.zeros(3000)])
    first += 1
    assert not second.any()


@pytest.mark.parametrize("batch", [[10], [10, 2]], ids=str)
def test_tensordicts_arrive(carry, batch):
    source = TensorDict({"image": torch.randn(*batch, 300), "meta": {"label": torch.randn(*batch, 2)}}, batch)
    made = carry(source)
    assert type(made) is TensorDict
    assert made.batch_size == source.batch_size
    assert (made == source).all()


@dataclasses.dataclass
class Sample:
    pixels: torch.Tensor
    name: str
    scores: numpy.ndarray


class Pair(NamedTuple):
    left: Any
    right: Any


class Colour(collections.UserDict):
    pass


def values() -> dict[str, Any]:
    shared = ["one"]
    return {
        "scalars": [None, True, 1, -(2**80), 1.5, 2j, "text", b"bytes", ..., NotImplemented],
        "nested": {"a": [1, (2, {"b": [3]})], ("tuple", "key"): {4, 5}, 6: frozenset([7]), None: range(3)},
        "numpy scalars": [numpy.float32(1.5), numpy.int64(2), numpy.datetime64("2020-01-01")],
        "a megabyte of bytes": bytes(range(256)) * 4096,
        "a megabyte of bytearray": bytearray(range(256)) * 4096,
        "20,000 strings": [f"/data/train/image_{i:06d}.jpg" for i in range(20_000)],
        "100,000 numbers": list(range(100_000)),
        "standard library": [datetime.datetime(2020, 1, 2), collections.deque([1, 2]), array.array("d", range(999))],
        "ordered": collections.OrderedDict([("z", 1), ("a", 2)]),
        "default": collections.defaultdict(list, {"a": [1]}),
        "user dict": Colour(red=1),
        "pair": Pair(1, Pair(2, [3])),
        "the same twice": [shared, shared],
        "empties": [[], (), {}, set(), "", b"", bytearray()],
    }


@pytest.mark.parametrize("name", values())
def test_python_values_arrive_equal_and_of_their_type(carry, name):
    value = values()[name]
    for _ in range(2):
        made = carry(value)
        assert made == value
        assert type(made) is type(value)


def test_identity_within_a_batch_is_kept(carry):
    first, second = carry(values()["the same twice"])
    assert first is second


def test_structures_that_contain_themselves_arrive(carry):
    loop: list[Any] = [torch.ones(3)]
    loop.append(loop)
    made = carry(loop)
    assert made[1] is made


def test_deep_nesting_arrives(carry):
    value: Any = torch.arange(5)
    for depth in range(200):
        value = [value] if depth % 2 else {"in": value}
    made = carry(value)
    for depth in reversed(range(200)):
        made = made[0] if depth % 2 else made["in"]
    assert torch.equal(made, torch.arange(5))


def test_a_dataclass_with_arrays_arrives(carry):
    made = carry(Sample(torch.arange(3000), "x", numpy.arange(3000)))
    assert type(made) is Sample
    assert torch.equal(made.pixels, torch.arange(3000))
    assert (made.name, made.scores.sum()) == ("x", 3000 * 2999 // 2)


def test_more_layouts_than_are_remembered_all_arrive(carry):
    for size in [*range(1, 400), *range(1, 400)]:
        assert carry({"x": torch.full((size,), size)})["x"].sum() == size * size


def test_one_batch_may_need_several_blocks(carry):
    carry(torch.zeros(10))
    made = carry([torch.full((1 << 18,), i) for i in range(9)])
    assert [tensor[0].item() for tensor in made] == list(range(9))
    assert all((tensor == i).all() for i, tensor in enumerate(made))


def test_after_a_value_that_cannot_travel_the_next_one_does(carry):
    with pytest.raises(TypeError):
        carry([torch.zeros(3000), threading.Lock()])
    carry.encoder.abandon()
    assert carry(torch.arange(3000)).sum() == 3000 * 2999 // 2


# -- through real workers ------------------------------------------------------------------------


class Handed(torch.utils.data.Dataset):
    """Sample ``i`` is the ``i``-th of the values it was made with."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> Any:
        return self.values[index]


def first(samples: list[Any]) -> Any:
    return samples[0]


def test_all_of_it_arrives_from_worker_processes():
    sent = [*values().values(), *ARRAYS.values(), torch.randn(60, 50).t(), torch.arange(5).expand(600, 5)]
    got = list(DataLoader(Handed(sent), collate_fn=first, num_workers=2))
    assert len(got) == len(sent)
    for made, value in zip(got, sent):
        if isinstance(value, torch.Tensor):
            assert made.stride() == value.stride()
        assert type(made) is type(value)
        if isinstance(value, numpy.ndarray) and value.dtype != object:
            assert made.tobytes() == value.tobytes()
        else:
            assert made.tolist() == value.tolist() if hasattr(value, "tolist") else made == value


def test_objects_of_a_class_made_in_a_function_are_recognised_when_they_return():
    class Scene:
        def __init__(self, depth: torch.Tensor) -> None:
            self.depth = depth

    class Scenes(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> Scene:
            return Scene(torch.full((1000,), index))

    for index, scene in enumerate(DataLoader(Scenes(), batch_size=None, num_workers=2)):
        assert isinstance(scene, Scene)
        assert (scene.depth == index).all()


def test_memory_mapped_tensordicts_arrive(tmp_path):
    source = TensorDict({"x": torch.arange(30_000).reshape(10, 3000)}, [10]).memmap_(tmp_path)
    for made in DataLoader(Handed([source, source]), batch_size=None, collate_fn=first_of_none, num_workers=1):
        assert (made["x"] == source["x"]).all()


def first_of_none(sample: Any) -> Any:
    return sample


def test_a_batch_that_cannot_be_sent_names_the_member():
    class Unsendable(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            return {"ok": 1, "meta": [0, io.TextIOWrapper(io.BytesIO())]} if index == 1 else {"ok": index}

    batches = iter(DataLoader(Unsendable(), batch_size=None, num_workers=1))
    assert next(batches) == {"ok": 0}
    with pytest.raises(CannotSend, match=r"batch\['meta'\]\[1\] \(_io.TextIOWrapper\)") as caught:
        next(batches)
    assert "PicklingError: Cannot pickle files" in caught.value.reason
    assert next(batches) == {"ok": 2}


def test_a_graph_tensor_is_refused_from_a_worker_as_torch_refuses_it():
    class Attached(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> torch.Tensor:
            return torch.ones(3, requires_grad=True) * 2

    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        next(iter(DataLoader(Attached(), num_workers=1)))


class Caching(torch.utils.data.Dataset):
    """Stacks its frames with torch's function, once, and keeps them in the worker."""

    def __init__(self) -> None:
        self.clips: dict[int, torch.Tensor] = {}

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        clip = index % 4
        if clip not in self.clips:
            self.clips[clip] = torch.utils.data.default_collate([torch.full((1000,), clip)] * 4)
        return self.clips[clip]


def test_what_a_dataset_keeps_is_not_written_over_by_later_batches():
    for number, batch in enumerate(DataLoader(Caching(), batch_size=2, num_workers=1)):
        assert [frames.unique().item() for frames in batch] == [2 * number % 4, 2 * number % 4 + 1]
        batch.fill_(-1)


class Remembering:
    """A collate function that gives its first batch again and again."""

    def __init__(self) -> None:
        self.first: torch.Tensor | None = None

    def __call__(self, samples: list[torch.Tensor]) -> list[torch.Tensor]:
        batch = torch.utils.data.default_collate(samples)
        if self.first is None:
            self.first = batch
        return [batch, self.first[:1] + 0]


def test_what_a_collate_fn_keeps_is_not_written_over_by_later_batches():
    data = torch.arange(32).reshape(32, 1).expand(32, 3000)
    for number, (batch, kept) in enumerate(DataLoader(Handed(list(data)), 1, collate_fn=Remembering(), num_workers=1)):
        assert (batch == number).all()
        assert (kept == 0).all()
        del batch, kept
