"""Large samples go to their place in the batch as soon as they are there.

Collating copies them anyway. Done at once, the sample is still in the cache, and its memory is free for the next one;
else every sample of a batch of images is written to cold memory and read back from it. What stands in the list of
samples from then on are the rows of the batch, so whoever looks at the samples sees no difference, and collating finds
that there is nothing left to do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch

NewTensor = Callable[[tuple[int, ...], torch.dtype, int, int], torch.Tensor]
LARGE = 1 << 16  # bytes of a part that is worth moving by itself, and ...
SPACIOUS = 1 << 20  # ... of all of them in the batch: less stays in the cache
DTYPES = {
    numpy.dtype(kind): torch.from_numpy(numpy.empty(0, kind)).dtype
    for kind in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "c16")
}
_REAL = frozenset(dtype for dtype in DTYPES.values() if not dtype.is_complex)  # a conjugate is no array of numpy's


class _Column:
    """One part of every sample, and the tensor of the batch that it becomes."""

    def __init__(self, part: Any, whole: torch.Tensor) -> None:
        self._kind, self._dtype, self._shape = type(part), part.dtype, part.shape
        self.whole = whole
        self._rows: Any = whole if self._kind is torch.Tensor else whole.numpy()
        # numpy copies by memcpy, torch does not: it takes half as long again where the row is not in the cache.
        self._as_array = whole.numpy() if self._kind is torch.Tensor and part.dtype in _REAL else None
        self.moved: list[Any] = []

    def moves(self, part: Any) -> Any:
        """Its row in place of the part; the part itself when it does not fit, and then of all that follow."""
        alike = type(part) is self._kind and part.dtype == self._dtype and part.shape == self._shape
        if not alike or not _is_dense(part):
            self._kind = type(None)
            return part
        number = len(self.moved)
        row = self._rows[number]
        if self._as_array is not None and part.is_contiguous():
            self._as_array[number] = part.numpy()
        else:
            row[...] = part
        self.moved.append(row)
        return row


class Mover:
    """For one worker. Memory comes from ``new_tensor``, for batches that have more than ``least`` bytes."""

    def __init__(self, new_tensor: NewTensor, least: int) -> None:
        self._new_tensor, self._least = new_tensor, max(least, SPACIOUS)
        self._columns: dict[Any, _Column] = {}  # by place in the sample; None for the sample itself

    def begin(self, sample: Any, count: int) -> bool:
        """Whether anything of samples like this first one of a batch is to be moved."""
        self._columns = {}
        if not _has_large_part(sample):  # as most samples, of which it is asked for every batch
            return False
        for place, part, references in _parts(sample):
            size = _size(part)
            alone = references <= (_AS_SAMPLE if place is None else _IN_SAMPLE)
            if size >= LARGE and size * count > self._least and alone and _is_dense(part) and not _is_view(part):
                self._add(place, part, count, size * count)
        return bool(self._columns)

    def _add(self, place: Any, part: Any, count: int, size: int) -> None:
        dtype = part.dtype if type(part) is torch.Tensor else DTYPES[part.dtype]
        try:
            whole = self._new_tensor((count, *part.shape), dtype, size // dtype.itemsize, size)
        except MemoryError:
            return  # collating will say so
        self._columns[place] = _Column(part, whole)

    def move(self, sample: Any) -> Any:
        """The next sample, with its large parts where they belong."""
        columns = self._columns
        if None in columns:
            return columns[None].moves(sample)
        if type(sample) is tuple:
            return tuple([columns[n].moves(part) if n in columns else part for n, part in enumerate(sample)])
        if type(sample) is dict:
            return {key: columns[key].moves(part) if key in columns else part for key, part in sample.items()}
        return sample

    def into(self, samples: list[Any]) -> Callable[[Any], None]:
        """In place of ``samples.append``."""
        append, move = samples.append, self.move
        return lambda sample: append(move(sample))

    def whole(self, values: Sequence[Any]) -> torch.Tensor | None:
        """The tensor of which these are all the rows."""
        for column in self._columns.values():
            if column.moved and column.moved[0] is values[0]:
                same = [row is value for row, value in zip(column.moved, values)]
                return column.whole if len(values) == len(column.whole) == sum(same) else None
        return None

    def forget(self) -> None:
        """The batch is made, or has failed."""
        self._columns = {}


def _has_large_part(sample: Any) -> bool:
    if type(sample) is tuple:
        return any([_size(part) >= LARGE for part in sample])  # noqa: C419  # a list is twice as fast here
    if type(sample) is dict:
        return any([_size(part) >= LARGE for part in sample.values()])  # noqa: C419  # as above
    return _size(sample) >= LARGE


def _size(part: Any) -> int:
    """Bytes of a tensor or array that has its numbers in one piece of memory; 0 of all else."""
    kind = type(part)
    if kind is numpy.ndarray or (kind is torch.Tensor and part.layout is torch.strided):
        return int(part.nbytes)
    return 0


def _parts(sample: Any) -> list[tuple[Any, Any, int]]:
    """Of each part: its place, itself, and how many references there are to it. What the data set holds was there
    before, and need not be moved before all the others."""
    if type(sample) is tuple:
        return [(place, part, sys.getrefcount(part)) for place, part in enumerate(sample)]
    if type(sample) is dict:
        return [(place, part, sys.getrefcount(part)) for place, part in sample.items()]
    return [(None, sample, sys.getrefcount(sample))]


def _is_dense(part: Any) -> bool:
    """Numbers in memory, and nothing that torch would have to say about stacking them."""
    if type(part) is not torch.Tensor:
        return part.dtype in DTYPES
    plain = part.device.type == "cpu" and part.layout is torch.strided and not part.requires_grad
    return plain and not part.is_nested


def _is_view(part: Any) -> bool:
    """Of something that was there before."""
    return part._is_view() if type(part) is torch.Tensor else part.base is not None


def _begun(sample: Any) -> int:
    """As `Mover.begin` counts them."""
    return _parts(sample)[0][2]


# Of what nobody else holds: how many that are differs between versions of Python.
_samples = [object()]
_AS_SAMPLE, _IN_SAMPLE = _begun(_samples[0]), _begun((object(),))
del _samples
