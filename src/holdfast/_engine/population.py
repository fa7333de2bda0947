"""What a loader's sampler chooses from, where that is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
)

from holdfast.sampling.distributed import DistributedSampler as OfRanks


def population(sampler: Any, *, lists: bool = True) -> Sequence[Any] | None:
    """Every index that it can give, or of which it makes ``lists``; None when nobody but the sampler knows.

    A class of the user's own is asked for nothing, also when it derives from torch's: it may choose otherwise.
    """
    if type(sampler) is BatchSampler:
        return population(sampler.sampler) if lists else None  # where a list is one index, a number is none
    if type(sampler) is SubsetRandomSampler:
        return sampler.indices
    if isinstance(sampler, OfRanks):
        return range(len(sampler.dataset))  # type: ignore[arg-type]  # torch's Dataset promises no length
    whole = {RandomSampler: "data_source", SequentialSampler: "data_source", DistributedSampler: "dataset"}
    name = whole.get(type(sampler))
    return None if name is None else range(len(getattr(sampler, name)))
