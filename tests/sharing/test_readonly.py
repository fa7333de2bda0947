"""Shared for reading: a write is an exception, and the bytes stay what they are."""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle

import numpy
import pytest
import receivers
import torch

from holdfast.errors import ReadOnlyShared
from holdfast.sharing import share
from holdfast.sharing.memory import HEADER

pytestmark = pytest.mark.once
WRITES = {
    "item": lambda x: x.__setitem__(0, 5),
    "method": lambda x: x.add_(1),
    "operator": lambda x: x.__iadd__(1),
    "view": lambda x: x[1:].zero_(),
    "out": lambda x: torch.add(torch.ones(6), 1, out=x),
    "detached": lambda x: x.detach().mul_(2),
    "data": lambda x: x.data.fill_(0),
    "function's view": lambda x: torch.narrow(x, 0, 0, 2).fill_(0),
    "foreach": lambda x: torch._foreach_add_([x], 1),
    "functional": lambda x: torch.nn.functional.relu(x, inplace=True),
    "numpy": lambda x: x.numpy().__setitem__(0, 5),
    "matmul": lambda x: torch.mv(torch.ones(6, 6), torch.ones(6), out=x),
    "random": lambda x: torch.nn.init.normal_(x),
}


@pytest.mark.parametrize("write", WRITES)
def test_every_way_to_write_to_a_tensor_is_refused(kind, write):
    x = share(torch.arange(6.0), readonly=True)
    for held in (x, pickle.loads(pickle.dumps(x))):
        with pytest.raises((RuntimeError, ValueError)):
            WRITES[write](held)
        assert held.tolist() == [0, 1, 2, 3, 4, 5]


def test_what_writes_by_name_is_refused_in_plain_words():
    x = share(torch.arange(6.0), readonly=True)
    for write in ("item", "method", "operator", "view", "detached", "random"):
        with pytest.raises(ReadOnlyShared, match="HF703"):
            WRITES[write](x)


READS = {
    "sum": lambda x: x.sum().item() == 15,
    "index": lambda x: x[2].item() == 2,
    "stack": lambda x: torch.stack([x[:2], x[2:4]]).shape == (2, 2),
    "matmul": lambda x: (x @ x).item() == 55,
    "linear": lambda x: torch.nn.functional.linear(torch.ones(1, 6), x[None]).item() == 15,
    "embedding": lambda x: torch.nn.functional.embedding(torch.tensor([1]), x.view(3, 2)).tolist() == [[2, 3]],
    "numpy": lambda x: numpy.asarray(x).sum() == 15,
    "clone": lambda x: x.clone().add_(1).sum() == 21,
    "list": lambda x: x.tolist() == [0, 1, 2, 3, 4, 5],
    "repr": lambda x: repr(x).startswith("tensor"),
    "gradient": lambda x: torch.autograd.grad((x * (w := torch.ones(6, requires_grad=True))).sum(), w)[0].sum() == 15,
}


@pytest.mark.parametrize("read", READS)
def test_reading_is_as_ever(read):
    assert READS[read](share(torch.arange(6.0), readonly=True))


def test_an_array_cannot_be_made_writable_again(kind):
    x = share(numpy.arange(6), readonly=True)
    for held in (x, pickle.loads(pickle.dumps(x))):
        with pytest.raises(ValueError, match="read-only"):
            held[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            held.flags.writeable = True


@pytest.mark.slow
def test_another_process_cannot_write_either(kind):
    x = share({"a": numpy.arange(6), "t": torch.arange(6)}, readonly=True)
    said = receivers.in_new_interpreter(
        x,
        "for write in (lambda: x['a'].fill(1), lambda: x['t'].fill_(1)):\n"
        "    try: write()\n"
        "    except Exception as error: print(type(error).__name__)",
    )
    assert said.split() == ["ValueError", "ReadOnlyShared"]
    assert x["a"].tolist() == x["t"].tolist() == list(range(6))


def test_the_kernel_refuses_whoever_has_the_descriptor():
    memory = share(numpy.arange(6), readonly=True)._memory
    with pytest.raises(PermissionError):
        os.pwrite(memory.fd, b"x", 0)
    with pytest.raises(PermissionError):
        mmap.mmap(memory.fd, memory.size)


@pytest.mark.slow
def test_what_writes_behind_torchs_back_writes_to_a_page_of_its_own(kind):
    """No segmentation fault, and nobody else sees it."""
    x = share(torch.arange(6.0), readonly=True)
    with open("/proc/self/maps") as lines:
        private = next(line for line in lines if "-shared" in line and " rw-p " in line)
    ctypes.memset(int(private.partition("-")[0], 16) + HEADER, 255, 24)
    assert x.isnan().all()
    assert receivers.in_new_interpreter(x, "print(x.tolist())") == "[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]"


def test_a_writable_one_is_copied_when_asked_for_read_only():
    x = share(numpy.zeros(3))
    y = share(x, readonly=True)
    x[0] = 1
    assert y.tolist() == [0, 0, 0]
    assert share(y) is y


def test_a_model_for_reading_cannot_be_trained():
    model = share(torch.nn.Linear(3, 3), readonly=True)
    model(torch.ones(1, 3)).sum().backward()
    with pytest.raises(RuntimeError):
        torch.optim.SGD(model.parameters(), 0.1).step()
