"""Tensors through the arena: the same bits, dtype, shape and, where they are dense, strides."""

from __future__ import annotations

import pytest
import torch
from carrier import Carrier
from hypothesis import given, settings
from hypothesis import strategies as st

# Quantised kinds are no dtypes of plain memory; they have their own test.
DTYPES = sorted(
    {kind for kind in vars(torch).values() if isinstance(kind, torch.dtype) and "q" not in str(kind)}, key=str
)
SMALL, LARGE = 3, 3000  # elements: one goes inside the message, the other through the arena


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Bytes of a dense tensor; equal for NaNs of the same kind, and for types that know no ==."""
    return tensor.detach().contiguous().as_strided((tensor.numel(),), (1,)).view(torch.uint8)


def random_of(dtype: torch.dtype, count: int) -> torch.Tensor:
    raw = torch.randint(0, 2 if dtype is torch.bool else 256, (count * dtype.itemsize,), dtype=torch.uint8)
    return raw.view(dtype)


def same(made: torch.Tensor, tensor: torch.Tensor) -> bool:
    assert (made.dtype, made.shape, made.requires_grad) == (tensor.dtype, tensor.shape, tensor.requires_grad)
    return torch.equal(bits(made), bits(tensor.resolve_conj().resolve_neg()))


@pytest.mark.parametrize("count", [SMALL, LARGE])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_keeps_its_bits(carry, dtype, count):
    tensor = random_of(dtype, count)
    made = carry(tensor)
    assert same(made, tensor)
    assert made.data_ptr() % 16 == 0


VIEWS = {
    "empty": lambda t: t[:0],
    "empty with a shape": lambda t: t[:0].reshape(4, 0, 7),
    "zero-dimensional": lambda t: t[5],
    "contiguous": lambda t: t.reshape(60, 50),
    "transposed": lambda t: t.reshape(60, 50).t(),
    "channels last": lambda t: t.reshape(2, 3, 20, 25).to(memory_format=torch.channels_last),
    "permuted": lambda t: t.reshape(10, 30, 10).permute(2, 0, 1),
    "expanded": lambda t: t[:50].expand(60, 50),
    "expanded from one": lambda t: t[:1].expand(3000),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("times", [1, 3])
def test_a_dense_view_keeps_its_strides(carry, view, times):
    tensor = view(torch.randn(LARGE))
    for _ in range(times):  # the second time its layout is known
        made = carry(tensor)
        assert same(made, tensor)
        assert made.stride() == tensor.stride()
        assert made.storage_offset() == 0


@pytest.mark.parametrize("view", ["every other", "a column", "windows"])
def test_a_view_with_gaps_keeps_its_values(carry, view):
    base = torch.randn(LARGE)
    views = {"every other": base[::2], "a column": base.reshape(60, 50)[:, 7], "windows": base.unfold(0, 100, 10)}
    assert same(carry(views[view]), views[view])


def test_a_small_view_of_a_large_storage_carries_only_itself(carry):
    carry(torch.zeros(1 << 22)[4096:8192])
    assert sum(carry.extents) == 1 << 20


@pytest.mark.parametrize("count", [SMALL, LARGE])
def test_lazy_views_arrive_resolved(carry, count):
    numbers = torch.randn(count, dtype=torch.complex64)
    for lazy in (numbers.conj(), numbers.conj().imag, numbers.conj().imag[::2]):
        made = carry(lazy)
        assert same(made, lazy)
        assert not made.is_conj()
        assert not made.is_neg()
    assert torch.equal(carry([numbers, numbers.conj()])[1], numbers.conj())


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_any_slice_of_any_shape_arrives(data):
    shape = data.draw(st.lists(st.integers(0, 6), max_size=4))
    scale = data.draw(st.sampled_from([1, 40]))
    base = torch.arange(torch.Size(shape).numel() * scale, dtype=data.draw(st.sampled_from([torch.int64, torch.int16])))
    base = base.reshape(*shape, scale)
    views = []
    for _ in range(data.draw(st.integers(1, 3))):
        slices = [slice(*sorted((data.draw(st.integers(0, n)), data.draw(st.integers(0, n))))) for n in base.shape]
        steps = [slice(s.start, s.stop, data.draw(st.integers(1, 3))) for s in slices]
        views.append(base[tuple(steps)].permute(data.draw(st.permutations(range(base.dim())))))
    carrier = Carrier()
    for made, view in zip(carrier(views), views):
        assert same(made, view)
    carrier.close()


# -- what is shared stays shared -----------------------------------------------------------------


@pytest.mark.parametrize("count", [SMALL, LARGE])
def test_tensors_of_one_storage_go_on_sharing_it(carry, count):
    tensor = torch.arange(count, dtype=torch.float32)
    whole, tail, same_object, bytes_of = carry([tensor, tensor[1:], tensor, tensor.view(torch.uint8)])
    assert same_object is whole
    tail[0] = 77
    assert whole[1] == 77
    bytes_of[:4] = 0
    assert whole[0] == 0


def test_views_far_apart_in_one_storage_keep_their_values(carry):
    base = torch.randn(10_000)
    first, last = carry((base[:10], base[-10:]))
    assert same(first, base[:10])
    assert same(last, base[-10:])


def test_tensors_of_two_storages_do_not_meet(carry):
    first, second = carry([torch.zeros(LARGE), torch.zeros(LARGE)])
    first.fill_(1)
    assert not second.any()


def test_the_trainer_may_write_to_a_batch(carry):
    for count in (SMALL, LARGE):
        made = carry(torch.zeros(count))
        made += 1
        assert carry(torch.zeros(count)).sum() == 0
        assert made.sum() == count


# -- autograd ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [SMALL, LARGE])
def test_a_leaf_that_requires_grad_does_so_afterwards(carry, count):
    made = carry(torch.ones(count, requires_grad=True))
    made.sum().backward()
    assert torch.equal(made.grad, torch.ones(count))


def test_a_tensor_inside_a_graph_is_refused_in_torchs_words(carry):
    inside = torch.ones(LARGE, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        carry([inside])
    with pytest.raises(RuntimeError) as by_torch:
        torch.multiprocessing.reductions.reduce_tensor(inside)
    with pytest.raises(RuntimeError) as by_us:
        carry({"x": inside})
    assert str(by_us.value) == str(by_torch.value)


# -- other layouts and kinds ---------------------------------------------------------------------

SPARSE = {
    "coo": lambda t: t.to_sparse(),
    "csr": lambda t: t.to_sparse_csr(),
    "csc": lambda t: t.to_sparse_csc(),
    "bsr": lambda t: t.to_sparse_bsr((5, 5)),
}


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta state:UserWarning")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled:UserWarning")
def test_sparse_tensors_stay_sparse(carry, kind):
    sparse = SPARSE[kind](torch.eye(60) * torch.randn(60))
    made = carry(sparse)
    assert made.layout is sparse.layout
    assert torch.equal(made.to_dense(), sparse.to_dense())


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage:UserWarning")
def test_nested_tensors_stay_nested(carry, layout):
    rows = [torch.randn(2, 300), torch.randn(4, 300)]
    made = carry(torch.nested.nested_tensor(rows, layout=layout))
    assert made.is_nested
    assert all(torch.equal(a, b) for a, b in zip(made.unbind(), rows, strict=True))


@pytest.mark.filterwarnings("ignore:.*quantiz.*")
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")
def test_quantised_tensors_stay_quantised(carry):
    per_tensor = torch.quantize_per_tensor(torch.randn(3, 900), 0.1, 2, torch.quint8)
    scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2])
    per_channel = torch.quantize_per_channel(torch.randn(3, 900), scales, zeros, 0, torch.qint8)
    for quantised in (per_tensor, per_channel):
        made = carry(quantised)
        assert made.dtype is quantised.dtype
        assert torch.equal(made.int_repr(), quantised.int_repr())
        assert torch.equal(made.dequantize(), quantised.dequantize())


def test_parameters_and_modules_arrive_as_such(carry):
    module = torch.nn.Linear(30, 50)
    made = carry({"module": module, "weight": module.weight})
    assert type(made["weight"]) is torch.nn.Parameter
    assert made["weight"].requires_grad
    assert made["module"].weight is made["weight"]
    assert torch.equal(made["module"].weight, module.weight)


def test_a_tensor_subclass_keeps_type_and_attributes(carry):
    class Mask(torch.Tensor):
        pass

    mask = torch.randn(LARGE).as_subclass(Mask)
    mask.label = "left lung"
    made = carry([mask, mask])
    assert type(made[0]) is Mask
    assert made[0].label == "left lung"
    assert made[0] is made[1]
    assert torch.equal(made[0], mask)


def test_storages_arrive_with_their_bytes(carry):
    tensor = torch.randn(LARGE)
    made, storage = carry((tensor, tensor.untyped_storage()))
    assert bytes(storage) == bytes(tensor.untyped_storage())
    assert storage.data_ptr() == made.data_ptr()


def test_meta_tensors_and_things_of_torch_without_memory_arrive(carry):
    plain = (torch.bfloat16, torch.Size([2, 3]), torch.device("cpu"), torch.strided)
    meta, *made = carry((torch.empty(5, device="meta"), *plain))
    assert meta.device.type == "meta"
    assert tuple(made) == plain
