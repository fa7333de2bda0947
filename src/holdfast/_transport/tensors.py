"""Tensors and their storages in values that are taken apart: as leaves, whose memory can be laid out elsewhere.

Imported as soon as torch is there, and by nothing that has to do without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .leaves import Region
from .packer import Packer, lays_out, takes

_NOT_A_LEAF = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
    "process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing "
    "(e.g., putting it on the queue)."
)


class TensorLeaf(NamedTuple):
    """A strided tensor. ``length`` elements from ``offset`` in a region; contiguous when ``stride`` is None."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    length: int
    region: int
    offset: int
    requires_grad: bool

    def rebuild(self, buffers: Sequence[Any], starts: Sequence[int]) -> torch.Tensor:
        if not self.length:
            return torch.empty(self.shape, dtype=self.dtype)
        offset = starts[self.region] + self.offset
        flat = torch.frombuffer(buffers[self.region], dtype=self.dtype, count=self.length, offset=offset)
        tensor = flat.view(self.shape) if self.stride is None else flat.as_strided(self.shape, self.stride)
        return tensor.requires_grad_() if self.requires_grad else tensor


def of_tensors(tensors: Sequence[torch.Tensor], regions: list[Region]) -> list[TensorLeaf]:
    """Leaves for all tensors of one value; those that share a storage go on sharing it."""
    if len(tensors) == 1:
        return [_alone(tensors[0], regions)]
    by_storage: dict[int, list[int]] = {}
    for i, tensor in enumerate(tensors):
        storage = tensor.untyped_storage().data_ptr() if tensor.numel() else 0
        by_storage.setdefault(storage or -1 - i, []).append(i)  # an empty one has nothing to share, and no address
    if len(by_storage) == len(tensors):
        return [_alone(tensor, regions) for tensor in tensors]
    leaves: dict[int, TensorLeaf] = {}
    for members in by_storage.values():
        group = [tensors[i] for i in members]
        made = [_alone(group[0], regions)] if len(group) == 1 else _together(group, regions)
        leaves.update(zip(members, made, strict=True))
    return [leaves[i] for i in range(len(tensors))]


def _alone(tensor: torch.Tensor, regions: list[Region]) -> TensorLeaf:
    tensor = tensor.resolve_conj().resolve_neg() if tensor.is_conj() or tensor.is_neg() else tensor
    count, stride = tensor.numel(), None
    if not tensor.is_contiguous():
        span = _span(tensor)
        if span <= count:  # dense in another order, or expanded: carry the bytes as they are
            count, stride = span, tensor.stride()
        else:
            tensor = tensor.contiguous()
    leaf = TensorLeaf(tensor.dtype, tuple(tensor.shape), stride, count, len(regions), 0, tensor.requires_grad)
    regions.append(Region(tensor.data_ptr(), count * tensor.element_size(), tensor))
    return leaf


def _together(group: list[torch.Tensor], regions: list[Region]) -> list[TensorLeaf]:
    """Views of one storage: one region that spans them all."""
    group = [tensor.resolve_conj().resolve_neg() for tensor in group]
    if len({tensor.untyped_storage().data_ptr() for tensor in group}) > 1:
        return [_alone(tensor, regions) for tensor in group]
    begins = [tensor.data_ptr() for tensor in group]
    spans = [_span(tensor) for tensor in group]
    begin = min(begins)
    begin = max(group[0].untyped_storage().data_ptr(), begin - begin % 16)  # elements stay aligned as they are
    end = max(b + n * t.element_size() for b, n, t in zip(begins, spans, group, strict=True))
    leaves = [
        TensorLeaf(t.dtype, tuple(t.shape), t.stride(), n, len(regions), b - begin, t.requires_grad)
        for b, n, t in zip(begins, spans, group, strict=True)
    ]
    regions.append(Region(begin, end - begin, group))
    return leaves


def _span(tensor: torch.Tensor) -> int:
    """Elements from the first to the last that the tensor touches."""
    if not tensor.numel():
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


# -- in pickles ----------------------------------------------------------------------------------


def _reduce_tensor(packer: Packer, tensor: torch.Tensor) -> Any:
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(_NOT_A_LEAF)
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
        return NotImplemented  # torch takes these apart itself, into plain tensors and storages
    if tensor.device.type == "cpu":
        return packer.reduce_flat(tensor)
    if tensor.device.type == "meta":
        return NotImplemented
    from torch.multiprocessing.reductions import reduce_tensor

    return reduce_tensor(tensor)


def _reduce_typed(packer: Packer, typed: torch.TypedStorage) -> Any:
    untyped = typed._untyped_storage
    return (typed_storage, (untyped, typed.dtype)) if untyped.device.type == "cpu" else NotImplemented


def _reduce_untyped(packer: Packer, untyped: torch.UntypedStorage) -> Any:
    if untyped.device.type != "cpu":
        return NotImplemented
    return untyped_storage, (torch.empty(0, dtype=torch.uint8).set_(untyped),)


def typed_storage(untyped: torch.UntypedStorage, dtype: torch.dtype) -> torch.TypedStorage:
    """Named in pickles, as is the next one."""
    return torch.TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


def untyped_storage(raw: torch.Tensor) -> torch.UntypedStorage:
    return raw.untyped_storage()


lays_out(torch.Tensor, of_tensors)
takes(torch.Tensor, _reduce_tensor)
takes(torch.TypedStorage, _reduce_typed)
takes(torch.UntypedStorage, _reduce_untyped)
