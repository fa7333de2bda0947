"""Random state as a function of (seed of the epoch, batch): the same for any number of workers, after any crash.

Users draw from torch's, numpy's and Python's global generators; all three are set before each batch. The seed of the
epoch itself is drawn in the trainer from the loader's generator, as torch draws its base seed.

What runs in the trainer's own process has its generators only for a moment: ``Fenced`` for a batch, ``Enclosed`` for
code that is called now and then and goes on where it was.
"""

from __future__ import annotations

import ctypes
import random
from functools import cache
from types import TracebackType
from typing import Any

import numpy
import torch

from holdfast._core.mixing import mix

from .seeding import seed_all

_mtrand: Any = numpy.random  # its stubs leave out the two functions used below
_MASK = (1 << 64) - 1
_NumpyPart = tuple[Any, float | None]
_States = tuple[torch.Tensor, tuple[Any, ...], _NumpyPart]  # of torch, Python and numpy


class Seeder:
    """Sets a worker process' global generators for a batch. A ``worker_init_fn`` that seeded torch has its way: the
    batches' seeds are then derived from that seed, and ``torch.initial_seed()`` goes on reporting it."""

    def __init__(self, given: int) -> None:
        own = torch.initial_seed()
        self._own: int | None = own if own != given else None

    def seed(self, seed: int, batch: int) -> None:
        if self._own is None:
            seed_all(mix(seed, batch))
            return
        seed_all(mix(self._own, batch))
        state = torch.default_generator.get_state()
        state[:8] = torch.tensor([self._own & _MASK], dtype=torch.uint64).view(torch.uint8)
        torch.default_generator.set_state(state)


class Fenced:
    """Loading in the trainer itself: the batch has its seed, and the trainer's random state is left as it was."""

    def __init__(self) -> None:
        self._bits = numpy.random.MT19937()

    def seed(self, seed: int, batch: int) -> Fenced:
        self._value = mix(seed, batch)
        return self

    def __enter__(self) -> None:
        self._torch = torch.default_generator.get_state()
        self._python = random.getstate()
        self._numpy = _numpy_part()
        _mtrand.set_bit_generator(self._bits)
        seed_all(self._value)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _put_numpy_part(self._numpy)
        random.setstate(self._python)
        torch.default_generator.set_state(self._torch)


class Enclosed:
    """Random numbers of its own for code that runs now and then between the trainer's: inside, the global generators go
    on where they were when it was last left; outside, the trainer's do.

    They begin as ``seed_all(seed)`` leaves them. With ``drawn=(seed, count)`` torch's has that seed instead, and begins
    after ``count`` draws of ``torch.empty((), dtype=torch.int64).random_()``.
    """

    def __init__(self, seed: int, drawn: tuple[int, int] | None = None) -> None:
        torch_seed, count = drawn or (seed, 0)
        generator = torch.Generator().manual_seed(torch_seed)
        torch.empty(count, dtype=torch.int64).random_(generator=generator)
        bits = numpy.random.MT19937()
        numpy.random.RandomState(bits).seed(seed & 0xFFFFFFFF)
        self._elsewhere: _States = generator.get_state(), random.Random(seed).getstate(), (bits, None)

    def __enter__(self) -> None:
        self._exchange()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._exchange()

    def _exchange(self) -> None:
        """What is in the global generators for what is kept here: the same on the way in and on the way out."""
        of_torch, of_python, of_numpy = self._elsewhere
        self._elsewhere = torch.default_generator.get_state(), random.getstate(), _numpy_part()
        torch.default_generator.set_state(of_torch)
        random.setstate(of_python)
        _put_numpy_part(of_numpy)


# -- numpy's global functions --------------------------------------------------------------------
#
# They draw from a bit generator, which is swapped: taking its state out and putting it back would cost 80 µs. Of each
# pair of gaussians they keep the second for the next call; a swap loses it, so it is taken out and put back.

_Memory = ctypes.c_uint32 * 625  # of a Mersenne twister: 624 words and a position


def _numpy_part() -> _NumpyPart:
    """The bit generator, and the gaussian that is kept, if there is one: it is taken out."""
    bits = _mtrand.get_bit_generator()
    memory = _memory(bits)
    if memory is None:
        state = _mtrand.get_state(legacy=False)
        return bits, state["gauss"] if state["has_gauss"] else None
    # get_state costs 40 µs, and to draw one costs 2: if the bit generator has not moved, it is the one that was kept.
    before = bytes(memory)
    gaussian = _mtrand.standard_normal()
    if bytes(memory) == before:
        return bits, gaussian
    ctypes.memmove(memory, before, len(before))
    return bits, None


def _put_numpy_part(part: _NumpyPart) -> None:
    bits, gaussian = part
    _mtrand.set_bit_generator(bits)
    if gaussian is None:
        return
    memory = _memory(bits)
    if memory is None:
        state = _mtrand.get_state(legacy=False)
    else:
        *key, position = memory[:]
        state = {"bit_generator": "MT19937", "state": {"key": key, "pos": position}}
    _mtrand.set_state({**state, "has_gauss": 1, "gauss": gaussian})


def _memory(bits: Any) -> Any:
    """The state of a bit generator in place, if it is numpy's usual one and looks as we know it."""
    known = type(bits) is numpy.random.MT19937 and _memory_is_known()
    return _Memory.from_address(bits.ctypes.state_address) if known else None


@cache
def _memory_is_known() -> bool:
    bits: Any = numpy.random.MT19937(0)
    state = bits.state["state"]
    return _Memory.from_address(bits.ctypes.state_address)[:] == [*state["key"].tolist(), state["pos"]]
