"""Random state as a function of (seed of the epoch, batch): the same for any number of workers, after any crash.

Users draw from torch's, numpy's and Python's global generators; all three are set before each batch. The seed of the
epoch itself is drawn in the trainer from the loader's generator, as torch draws its base seed.
"""

from __future__ import annotations

import random
from types import TracebackType
from typing import Any

import numpy
import torch

from holdfast._core.mixing import mix

_mtrand: Any = numpy.random  # its stubs leave out the two functions used below
_MASK = (1 << 64) - 1


def seed_all(value: int) -> None:
    # The default generator directly: torch.manual_seed visits every accelerator as well, 210 µs instead of 1.3.
    torch.default_generator.manual_seed(value)
    random.seed(value)
    numpy.random.seed(value & 0xFFFFFFFF)


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
        # Swapped, not saved: taking numpy's state out and putting it back costs 95 µs.
        self._numpy = _mtrand.get_bit_generator()
        _mtrand.set_bit_generator(self._bits)
        seed_all(self._value)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _mtrand.set_bit_generator(self._numpy)
        random.setstate(self._python)
        torch.default_generator.set_state(self._torch)
