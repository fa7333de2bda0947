"""What is shared behaves as what it replaces."""

from __future__ import annotations

import copy
import io
import pickle
from collections import OrderedDict, defaultdict, namedtuple

import numpy
import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset, default_collate

from holdfast.errors import CannotShare
from holdfast.sharing import PackedDict, PackedList, SharedArray, SharedTensor, lock_of, share

TENSORS = {
    "contiguous": torch.arange(24.0).reshape(2, 3, 4),
    "channels_last": torch.arange(24.0).reshape(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
    "bfloat16": torch.arange(6.0).bfloat16(),
    "bool": torch.tensor([True, False]),
    "complex": torch.arange(4.0).reshape(2, 2) * 1j,
    "scalar": torch.tensor(3),
    "empty": torch.empty(0, 3),
    "slice": torch.arange(100)[10:20],
    "transposed": torch.arange(6).reshape(2, 3).T,
    "expanded": torch.arange(3).expand(4, 3),
    "conjugate": (torch.arange(4.0) * 1j).conj(),
}
ARRAYS = {
    "c": numpy.arange(24.0).reshape(2, 3, 4),
    "fortran": numpy.asfortranarray(numpy.arange(6).reshape(2, 3)),
    "text": numpy.array(["a", "bcd"]),
    "dates": numpy.array(["2020-01-01"], "datetime64[D]"),
    "records": numpy.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]),
    "scalar": numpy.array(5),
    "empty": numpy.empty((0, 3)),
    "reversed": numpy.arange(10)[::-2],
}


@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_is_a_tensor_with_the_same_content(kind, name):
    original = TENSORS[name]
    x = share(original)
    assert isinstance(x, torch.Tensor)
    assert x.dtype is original.dtype
    assert torch.equal(x, original)
    again = pickle.loads(pickle.dumps(x))
    assert again.is_shared()
    assert torch.equal(again, original)
    assert again.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_is_an_array_with_the_same_content(kind, name):
    original = ARRAYS[name]
    x = share(original)
    assert isinstance(x, numpy.ndarray)
    assert x.dtype == original.dtype
    assert numpy.array_equal(x, original)
    assert numpy.array_equal(pickle.loads(pickle.dumps(x)), original)


def test_the_original_stays_as_it_was_and_apart():
    tensor, array = torch.zeros(3), numpy.zeros(3)
    share(tensor).fill_(1)
    share(array)[:] = 1
    assert not tensor.any()
    assert not array.any()
    assert not tensor.is_shared()


def test_memory_order_is_kept():
    assert share(TENSORS["channels_last"]).is_contiguous(memory_format=torch.channels_last)
    assert share(ARRAYS["fortran"]).flags.f_contiguous


def test_what_is_computed_is_plain_and_views_are_shared():
    x, a = share(torch.zeros(4, 6)), share(numpy.zeros((4, 6)))
    for made in (
        x + 1,
        x.sum(),
        x[[0, 1]],
        x.clone(),
        torch.stack([x[0], x[1]]),
        x.to(torch.int32),
        default_collate([x[0]]),
    ):
        assert type(made) is torch.Tensor
    for view in (x[0], x[1:, 2], x.T, x.view(-1), x.reshape(6, 4), x.detach(), x.unbind()[0], x.split(2)[1], *x):
        assert type(view) is SharedTensor
        pickle.loads(pickle.dumps(view)).add_(1)
    assert x.sum() == 4 * 24 + 2 * 6 + 3 + 12 + 24  # each view has added one to all that it shows
    assert type(a + 1) is numpy.ndarray
    assert type(a.sum()) is numpy.float64
    assert type(a.sum(0)) is numpy.ndarray
    pickle.loads(pickle.dumps(a[1:, ::-1]))[0, 0] = 5
    assert a[1, 5] == 5
    assert type(pickle.loads(pickle.dumps(a.copy()))) is numpy.ndarray


def test_views_are_shared_in_inference_mode_too():
    x = share(torch.zeros(4))
    with torch.inference_mode():
        assert type(x[1:]) is SharedTensor
        assert type(x[[1, 2]]) is torch.Tensor


def test_torch_and_numpy_see_the_same_bytes():
    a, x = share(numpy.zeros(4, "float32")), share(torch.zeros(4))
    torch.as_tensor(a)[0] = 1
    torch.from_numpy(a)[1] = 1
    numpy.asarray(x)[2] = 1
    x.numpy()[3] = 1
    assert a.tolist() == [1, 1, 0, 0]
    assert x.tolist() == [0, 0, 1, 1]
    assert type(x.numpy()) is SharedArray


def test_a_copy_does_not_keep_the_shared_memory():
    a = share(numpy.zeros(1000))
    small = a[[1, 2]]
    assert small._memory is None
    assert a.copy()._memory is None
    assert a[2:]._memory is a._memory


def test_a_deep_copy_is_private_and_a_shallow_one_is_not():
    for x in (share(torch.zeros(3)), share(numpy.zeros(3))):
        deep, shallow = copy.deepcopy(x), copy.copy(x) if isinstance(x, torch.Tensor) else x[:]
        x[0] = 1
        assert deep[0] == 0
        assert shallow[0] == 1
        assert type(deep) in (torch.Tensor, numpy.ndarray)


def test_a_saved_file_holds_values_and_only_those_of_the_view():
    x = share({"big": torch.zeros(100_000), "small": torch.ones(3)})
    file = io.BytesIO()
    torch.save({"part": x["small"], "tensor": x["big"][:2]}, file)
    assert file.tell() < 10_000
    file.seek(0)
    loaded = torch.load(file, weights_only=True)
    assert type(loaded["part"]) is torch.Tensor
    assert loaded["part"].tolist() == [1, 1, 1]


def test_gradients_flow_into_a_shared_leaf_and_a_result_with_history_does_not_travel():
    x = share(torch.ones(3, requires_grad=True))
    (x[1:] * 2).sum().backward()
    assert x.grad.tolist() == [0, 2, 2]
    assert pickle.loads(pickle.dumps(x)).requires_grad
    with pytest.raises(RuntimeError, match="detach"):
        pickle.dumps(x[1:])


Point = namedtuple("Point", "x y")


def test_containers_are_made_again_around_what_is_shared():
    array, label = numpy.zeros(3), object()
    value = {
        "a": [array, Point(array, label)],
        "o": OrderedDict(t=torch.zeros(2)),
        "d": defaultdict(list, n=array),
        "s": "x",
    }
    x = share(value)
    assert type(value["a"][0]) is numpy.ndarray
    assert type(x["a"][1]) is Point
    assert x["a"][1].y is label
    assert x["a"][0] is x["a"][1].x is x["d"]["n"]
    assert x["d"]["missing"] == []
    again = pickle.loads(pickle.dumps({"a": x["a"][0], "o": x["o"]}))
    again["a"][0] = again["o"]["t"][0] = 7
    assert x["a"][1].x[0] == x["o"]["t"][0] == 7


def test_keys_and_subclasses_of_any_kind_are_left_alone():
    class Bag(list):
        def __init__(self, *parts: object) -> None:
            super().__init__(parts)

    value = {"{0}": {"}": numpy.zeros(2)}, "bag": Bag(numpy.zeros(2), 1)}
    x = share(value)
    assert isinstance(x["{0}"]["}"], SharedArray)
    assert x["bag"] is value["bag"]


def test_views_of_one_tensor_stay_views_of_one():
    base = torch.zeros(10)
    x = share([base, base[2:4]])
    x[1].fill_(1)
    assert x[0].tolist() == [0, 0, 1, 1, 0, 0, 0, 0, 0, 0]


def test_sharing_again_copies_nothing():
    x, a = share(torch.zeros(3)), share(numpy.zeros(3))
    assert share(x) is x
    assert share(a) is a
    view = share(torch.narrow(x, 0, 0, 2))  # made by a function, so a plain tensor
    view.fill_(1)
    assert x.tolist() == [1, 1, 0]
    assert type(view) is SharedTensor


class Samples(Dataset):
    """As users write them: paths, labels, an array, a function, and something small."""

    def __init__(self) -> None:
        self.paths = [f"/data/{i}.jpg" for i in range(2000)]
        self.labels = {path: i for i, path in enumerate(self.paths)}
        self.mean, self.classes, self.transform = torch.ones(3), ["cat", "dog"], str.upper

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[str, int]:
        return self.transform(self.paths[index]), self.labels[self.paths[index]]


def test_a_data_set_has_its_large_parts_packed_and_the_given_one_is_left_alone():
    given = Samples()
    dataset = share(given)
    assert type(dataset) is Samples
    assert type(given.paths) is list
    assert isinstance(dataset.paths, PackedList)
    assert isinstance(dataset.labels, PackedDict)
    assert isinstance(dataset.mean, SharedTensor)
    assert dataset.classes is given.classes
    assert [dataset[i] for i in range(2000)] == [given[i] for i in range(2000)]
    lock_of(dataset).acquire(timeout=1)
    lock_of(dataset).release()


def test_data_sets_inside_data_sets_are_found():
    inner = TensorDataset(torch.arange(10.0))
    dataset = share(ConcatDataset([Subset(inner, [3, 4]), inner]))
    assert dataset[0][0] == 3
    assert dataset.datasets[0].dataset is dataset.datasets[1]
    assert isinstance(dataset.datasets[1].tensors[0], SharedTensor)


def test_a_module_is_shared_in_place_with_its_ties_and_its_optimizer():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 4))
    model[2].weight = model[0].weight
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert share(model) is model
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    other = pickle.loads(pickle.dumps(model))
    assert other[0].weight is other[2].weight
    assert isinstance(other[0].weight, torch.nn.Parameter)
    model(torch.rand(8, 4)).sum().backward()
    optimizer.step()
    assert not torch.equal(model[0].weight, before["0.weight"])
    assert all(torch.equal(mine, its) for mine, its in zip(model.state_dict().values(), other.state_dict().values()))


def test_a_saved_module_is_a_module_of_its_own():
    model = share(torch.nn.Linear(3, 3))
    for what in (model, model.state_dict()):
        file = io.BytesIO()
        torch.save(what, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=what is not model)
        weight = loaded["weight"] if isinstance(loaded, dict) else loaded.weight
        assert type(weight) in (torch.Tensor, torch.nn.Parameter)
        assert torch.equal(weight, model.weight)
    assert type(copy.deepcopy(model).weight) is torch.nn.Parameter


def test_a_module_that_is_moved_to_another_type_is_private_again():
    model = share(torch.nn.Linear(3, 3)).double()
    again = pickle.loads(pickle.dumps(model))
    with torch.no_grad():
        model.weight.fill_(5)
    assert not torch.equal(again.weight, model.weight)


@pytest.mark.parametrize("what", [5, None, object, torch.zeros(2).to_sparse(), numpy.array([object])], ids=repr)
def test_what_cannot_be_shared_is_refused(what):
    with pytest.raises(CannotShare, match="HF702"):
        share(what)


def test_what_contains_itself_is_refused():
    value: list[object] = [numpy.zeros(2)]
    value.append(value)
    with pytest.raises(CannotShare, match="contains itself"):
        share(value)


def test_small_containers_of_plain_data_stay_what_they_are():
    value = {"a": [1, 2], "b": "text"}
    assert share(value) is value
