"""A ``torch.Generator`` as text: what a saved state keeps of it."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

_PLANES = 8


def is_fresh(generator: torch.Generator) -> bool:
    """Whether nothing was drawn from it since it was seeded."""
    probe = torch.Generator(generator.device).manual_seed(generator.initial_seed())
    return torch.equal(generator.get_state(), probe.get_state())


def pack(generator: torch.Generator) -> str:
    """Its whole state: ``seed:123`` if it is fresh, else about 3 KB such as ``cpu:c-m#...``."""
    if is_fresh(generator):
        return f"seed:{generator.initial_seed()}"
    raw = generator.get_state().numpy().tobytes()
    # torch keeps each word of 32 bits in 64: with the n-th bytes of all of them side by side, the empty ones vanish.
    planes = b"".join(raw[plane::_PLANES] for plane in range(_PLANES))
    return f"{generator.device.type}:{base64.b85encode(zlib.compress(planes)).decode()}"


def unpack(generator: torch.Generator, text: str) -> None:
    """Puts the generator where the packed one was; it is left alone if that is not possible."""
    kind, _, data = text.partition(":")
    if kind not in ("seed", generator.device.type):
        raise ValueError(
            f"a generator on {generator.device.type} takes a text that begins with 'seed:' or "
            f"'{generator.device.type}:', as pack() gives it, not {_shown(text)}"
        )
    try:
        if kind == "seed":
            generator.manual_seed(int(data))
        else:
            generator.set_state(_state(data, generator.get_state().numel()))
    except (ValueError, RuntimeError, zlib.error) as error:
        raise ValueError(f"not the state of a generator on {generator.device.type}: {_shown(text)} ({error})") from None


def _state(data: str, size: int) -> torch.Tensor:
    planes = zlib.decompress(base64.b85decode(data))
    if len(planes) != size:
        raise ValueError(f"it has {len(planes)} bytes, not {size}")
    raw, begin = bytearray(size), 0
    for plane in range(_PLANES):
        count = len(raw[plane::_PLANES])
        raw[plane::_PLANES] = planes[begin : begin + count]
        begin += count
    return torch.frombuffer(raw, dtype=torch.uint8)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


@contextmanager
def unmoved(generators: Iterable[torch.Generator]) -> Iterator[None]:
    """Whatever is drawn from these inside was not drawn."""
    states = [(generator, generator.get_state()) for generator in generators]
    try:
        yield
    finally:
        for generator, state in states:
            generator.set_state(state)
