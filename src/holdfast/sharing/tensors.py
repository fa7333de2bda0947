"""Tensors and parameters in shared memory.

They are of a class of their own only so that they know how to travel. What is computed from them is a plain tensor,
at full speed; so is a view that is made by a function (``torch.narrow(x, 0, 2, 4)``) and not by a method: it lies in
the same memory, and ``torch.multiprocessing`` passes it on as such, but pickle, by itself, would copy it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import torch
from torch.nn import Parameter

from holdfast.errors import ReadOnlyShared

from .arrays import SharedArray, array_at
from .locks import Lock
from .memory import Memory, memory_of

_VIEWS = (
    "as_strided", "chunk", "detach", "diagonal", "expand", "expand_as", "flatten", "movedim", "narrow",
    "permute", "reshape", "select", "split", "squeeze", "swapaxes", "t", "tensor_split", "transpose", "unbind",
    "unflatten", "unfold", "unsqueeze", "view", "view_as",
)  # fmt: skip
_getitem = torch.Tensor.__getitem__
_NOT_A_LEAF = "a tensor with a history of gradients cannot go to another process: detach() it first"
_HARMLESS = ("requires_grad_", "detach_", "share_memory_")  # of those whose names end like this


class _Travels:
    """What tensors and parameters in shared memory have in common."""

    @property
    def lock(self) -> Lock:
        """One for all that was shared by one call of ``share``."""
        memory = memory_of(self)  # type: ignore[arg-type]
        if memory is None:
            raise AttributeError("this tensor is not in shared memory")
        return memory.lock

    def __reduce_ex__(self: Any, protocol: Any) -> Any:
        memory = memory_of(self)
        if memory is None or _is_being_saved():
            return _private(self).__reduce_ex__(protocol)
        return reduced(self, memory)

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        memo[id(self)] = copied = _private(self)
        return copied


class SharedTensor(_Travels, torch.Tensor):
    """A tensor whose bytes all processes see that are handed it."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @property
    def T(self) -> torch.Tensor:  # type: ignore[override]
        return self.permute(*range(self.ndim)[::-1])

    @property
    def mT(self) -> torch.Tensor:  # type: ignore[override]
        return self.transpose(-2, -1)

    def __getitem__(self, index: Any) -> Any:
        return _of_kind(type(self), _getitem(self, index))

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(self.unbind(0))

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return repr(self.as_subclass(torch.Tensor))

    def __format__(self, form: str) -> str:
        return format(self.as_subclass(torch.Tensor), form)

    def is_shared(self) -> bool:
        return True

    def share_memory_(self) -> SharedTensor:
        return self

    def numpy(self, *, force: bool = False) -> Any:
        memory = memory_of(self)
        if memory is None or self.requires_grad or self.is_conj() or self.is_neg():
            return torch.Tensor.numpy(self, force=force)
        size, kind = self.element_size(), torch.empty(0, dtype=self.dtype).numpy().dtype
        strides = [size * stride for stride in self.stride()]
        return array_at(memory, size * int(self.storage_offset()), kind, self.shape, strides)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array: SharedArray = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)


class ReadOnlyTensor(SharedTensor):
    """One that nobody can write to. Methods that write say so; functions that do, torch refuses in its own words."""

    def data_ptr(self) -> int:
        raise ReadOnlyShared("data_ptr()")


class SharedParameter(_Travels, Parameter):
    """A module's parameter whose bytes all processes see that are handed the module."""

    def detach(self) -> torch.Tensor:
        memory, plain = memory_of(self), torch.Tensor.detach(self)
        return plain if memory is None else as_shared(plain, memory)


def reduced(tensor: torch.Tensor, memory: Memory) -> Any:
    """What a pickle says of a tensor that lies there."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(_NOT_A_LEAF)
    if tensor.is_conj() or tensor.is_neg():  # its bytes are not what it says
        return _private(tensor).__reduce_ex__(5)
    start = tensor.storage_offset() * tensor.element_size()
    is_parameter, shape = isinstance(tensor, Parameter), tuple(tensor.shape)
    return tensor_at, (memory, start, tensor.dtype, shape, tensor.stride(), tensor.requires_grad, is_parameter)


def tensor_at(
    memory: Memory,
    start: int,
    dtype: torch.dtype,
    shape: Sequence[int],
    stride: Sequence[int],
    requires_grad: bool = False,
    is_parameter: bool = False,
) -> Any:
    """A tensor of bytes that lie there already. Named in pickles."""
    plain = plain_at(memory, start, dtype, shape, stride)
    if is_parameter:
        parameter = Parameter(plain, requires_grad)
        parameter.__class__ = SharedParameter
        return parameter
    return torch.Tensor._make_subclass(_kind(memory), plain, requires_grad)


def plain_at(memory: Memory, start: int, dtype: torch.dtype, shape: Any, stride: Any) -> torch.Tensor:
    return torch.empty(0, dtype=dtype).set_(memory.storage(), start // dtype.itemsize, shape, stride)


def as_shared(tensor: torch.Tensor, memory: Memory) -> torch.Tensor:
    """The same tensor, of the kind that knows how to travel."""
    return tensor.detach().as_subclass(_kind(memory))


def _kind(memory: Memory) -> type[SharedTensor]:
    return ReadOnlyTensor if memory.readonly else SharedTensor


def _private(tensor: Any) -> Any:
    """A plain copy. In a file too: of a view, torch would save all that is shared with it."""
    copied = torch.Tensor.detach(tensor).as_subclass(torch.Tensor).clone()
    if isinstance(tensor, Parameter):
        return Parameter(copied, tensor.requires_grad)
    return copied.requires_grad_(tensor.requires_grad)


def _is_being_saved() -> bool:
    """By ``torch.save``, whose files are to hold values and not the way to a memory that will be gone. It asks for the
    same as every pickler, so who asks is all there is to tell it by."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__") == "torch.serialization":
            return True
        frame = frame.f_back
    return False


def _of_kind(kind: type[SharedTensor], made: Any) -> Any:
    """``made``, which is a view or a copy, such that it can travel if it is a view."""
    if type(made) is tuple or type(made) is list:
        return type(made)(_of_kind(kind, part) for part in made)
    if made._is_view() or memory_of(made) is not None:  # the second for torch.inference_mode(), where no view says so
        return made.as_subclass(kind)
    return made


def _viewing(made_by: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(made_by)
    def method(self: SharedTensor, *args: Any, **kwargs: Any) -> Any:
        return _of_kind(type(self), made_by(self, *args, **kwargs))

    return method


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        raise ReadOnlyShared(name)

    return method


for _name in _VIEWS:
    setattr(SharedTensor, _name, _viewing(getattr(torch.Tensor, _name)))
for _name in dir(torch.Tensor):
    _is_in_place = _name.endswith("_") and not _name.startswith("_") and _name not in _HARMLESS
    _is_operator = _name.startswith("__i") and hasattr(torch.Tensor, "__" + _name[3:])  # such as __iadd__
    if _is_in_place or _is_operator or _name == "__setitem__":
        setattr(ReadOnlyTensor, _name, _refusing(_name))
