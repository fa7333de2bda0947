"""Fingerprints of samples, by which a stream that is gone through again is known to be the same."""

from __future__ import annotations

import pytest
import torch

from holdfast._worker.digests import fingerprint

DTYPES = [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int64, torch.uint8, torch.bool, torch.complex64]


def numbers(dtype: torch.dtype) -> torch.Tensor:
    return (torch.arange(12) % 3).to(dtype).reshape(3, 4)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_number_makes_the_difference_in_every_type(dtype):
    other = numbers(dtype)
    other[1, 1] = torch.tensor(0).to(dtype)
    assert fingerprint(numbers(dtype)) == fingerprint(numbers(dtype)) is not None
    assert fingerprint(other) != fingerprint(numbers(dtype))


def test_how_numbers_lie_in_memory_makes_none():
    plain = torch.tensor([[1 - 2j, 3 + 4j], [5j, 6]])
    assert fingerprint(plain.t().contiguous().t()) == fingerprint(plain)
    assert fingerprint(plain.conj().conj_physical().clone()) == fingerprint(plain)
    assert fingerprint(plain.conj()) == fingerprint(plain.conj().resolve_conj()) != fingerprint(plain)


def test_type_and_shape_belong_to_it():
    zeros = torch.zeros(4)
    assert len({fingerprint(each) for each in (zeros, zeros.int(), zeros.reshape(2, 2), zeros[:3])}) == 4
    assert fingerprint(torch.zeros(4, requires_grad=True)) == fingerprint(zeros)


def test_of_what_has_no_memory_to_read_there_is_none():
    assert fingerprint(torch.zeros(2).to_sparse()) is None
    assert fingerprint(torch.zeros(2, device="meta")) is None
