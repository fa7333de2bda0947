"""A generator that was packed goes on elsewhere as if nothing had happened."""

from __future__ import annotations

import base64
import json
import zlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from holdfast.sampling.generators import is_fresh, pack, unpack

SEEDS = some.integers(-(2**63), 2**64 - 1)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draws(generator: torch.Generator) -> list[float]:
    """Of several kinds, and enough to begin a new round of the twister's 624 words."""
    shuffled = torch.randperm(700, generator=generator).tolist()
    return [*shuffled, *(torch.randn((), generator=generator).item() for _ in range(3))]


@settings(deadline=None)
@given(SEEDS)
def test_a_generator_is_fresh_until_something_is_drawn(seed: int):
    generator = seeded(seed)
    assert is_fresh(generator)
    torch.rand((), generator=generator)
    assert not is_fresh(generator)
    generator.manual_seed(seed)
    assert is_fresh(generator)


def test_a_generator_that_nobody_seeded_is_fresh():
    assert is_fresh(torch.Generator())


def test_to_look_at_a_generator_does_not_change_it():
    generator = seeded(3)
    torch.rand((), generator=generator)
    before = generator.get_state()
    is_fresh(generator)
    pack(generator)
    assert torch.equal(generator.get_state(), before)


@settings(deadline=None)
@given(SEEDS, some.integers(0, 1300), some.booleans())
def test_an_unpacked_generator_is_in_the_same_state(seed: int, words: int, gaussian: bool):
    generator, other = seeded(seed), seeded(1)
    torch.empty(words, dtype=torch.int32).random_(generator=generator)
    if gaussian:  # of a pair, of which the other is kept
        torch.randn((), generator=generator, dtype=torch.float64)
    unpack(other, json.loads(json.dumps(pack(generator))))
    assert torch.equal(other.get_state(), generator.get_state())
    assert other.initial_seed() == generator.initial_seed()
    assert draws(other) == draws(generator)


@settings(deadline=None)
@given(SEEDS)
def test_a_fresh_generator_is_packed_as_its_seed(seed: int):
    text = pack(seeded(seed))
    assert text == f"seed:{seed % 2**64}"
    other = seeded(1)
    unpack(other, text)
    assert torch.equal(other.get_state(), seeded(seed).get_state())


def test_the_default_generator_is_one_too():
    before = torch.get_rng_state()
    text = pack(torch.default_generator)
    expected = torch.rand(3).tolist()
    unpack(torch.default_generator, text)
    assert torch.rand(3).tolist() == expected
    torch.set_rng_state(before)


def test_a_packed_generator_is_short():
    generator = seeded(3)
    draws(generator)
    assert len(pack(generator)) < 3400
    assert len(generator.get_state()) > 5000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "begins with 'seed:' or 'cpu:'.* not ''"),
        ("cuda:c-m#", "begins with 'seed:' or 'cpu:'.* not 'cuda:c-m#'"),
        ("seed:x", "'seed:x'"),
        ("seed:99999999999999999999", "'seed:99999999999999999999'"),
        ("cpu:c-m#", "not the state of a generator on cpu: 'cpu:c-m#'"),
        ("cpu:" + "é" * 5000, r"not the state of a generator on cpu: 'cpu:é{36}\.\.\.'"),
        (f"cpu:{base64.b85encode(zlib.compress(bytes(16))).decode()}", "it has 16 bytes, not 5056"),
        (f"cpu:{base64.b85encode(zlib.compress(bytes(5056))).decode()}", "not the state of a generator on cpu"),
    ],
)
def test_a_text_that_is_no_state_is_an_error_and_changes_nothing(text: str, reason: str):
    generator = seeded(3)
    torch.rand((), generator=generator)
    before = generator.get_state()
    with pytest.raises(ValueError, match=reason):
        unpack(generator, text)
    assert torch.equal(generator.get_state(), before)
