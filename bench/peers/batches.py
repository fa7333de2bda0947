"""Whole batches by one call: for peers that map a function over what a sampler gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler, default_collate

from bench.works.work import Work


class Batches:
    """From the indices of a batch to the batch; in one call of the data set where it has one for that."""

    def __init__(self, work: Work) -> None:
        self.dataset = work.dataset
        self.collate = work.collate or default_collate

    def samples(self, indices: Sequence[int]) -> list[Any]:
        dataset = self.dataset
        if hasattr(dataset, "__getitems__"):
            return list(dataset.__getitems__(list(indices)))
        return [dataset[index] for index in indices]

    def __call__(self, indices: Sequence[int]) -> Any:
        return self.collate(self.samples(indices))


def index_batches(work: Work) -> BatchSampler:
    """Each `iter` gives an epoch; another order each time where the work is shuffled."""
    samples = range(work.length)
    sampler = RandomSampler(samples) if work.shuffle else SequentialSampler(samples)
    return BatchSampler(sampler, work.batch_size, drop_last=False)


class Part:
    """One worker's share of a stream, in batches; each `iter` begins it again."""

    def __init__(self, work: Work, number: int = 0, of: int = 1, *, collated: bool = True) -> None:
        self.dataset, self.batch_size = work.dataset, work.batch_size
        self.collate = (work.collate or default_collate) if collated else list
        self.number, self.of = number, of

    def __iter__(self) -> Iterator[Any]:
        samples = iter(self.dataset.part(self.number, self.of))
        while batch := list(islice(samples, self.batch_size)):
            yield self.collate(batch)
