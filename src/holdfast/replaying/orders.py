"""What was drawn in an epoch of a loader, and for which batch: the sampler is asked again, and nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from types import SimpleNamespace
from typing import Any

import torch

from holdfast._worker.fetch import listed
from holdfast.ledger import hashable
from holdfast.sampling.sources import Facts, Source, opened
from holdfast.sampling.springs import draw
from holdfast.state.moment import Moment, Moments
from holdfast.state.run import Epoch, Run


class Order:
    """Of one epoch. Also of a stock loader: as it would be with ours in its place."""

    def __init__(self, loader: Any, epoch: Epoch) -> None:
        self._loader, self._epoch = loader, epoch

    def batch(self, number: int) -> list[Any]:
        """Its indices; none when the epoch has no such batch."""
        return next(islice(self._batches(), number, None), [])

    def batch_of(self, index: Any) -> int | None:
        """The first one that this index was drawn for."""
        key = hashable(index)
        return next((number for number, batch in enumerate(self._batches()) if key in map(hashable, batch)), None)

    def moment(self, batch: int) -> Moment:
        source, epoch = self._source(), self._epoch
        return Moments(epoch.number, epoch.seed, epoch.order, source.stride, source.shift).at(batch)

    def _source(self) -> Source:
        epoch = self._epoch
        return opened(self._loader._index_sampler, Facts(epoch.seed, epoch.number, epoch.order, 0), {})

    def _batches(self) -> Iterator[list[Any]]:
        source, lists = self._source(), self._loader._auto_collation
        while True:
            try:
                index = next(source)
            except StopIteration:
                return
            yield listed(index) if lists else [index]


def epoch_of(loader: Any, number: int) -> Epoch:
    """As if the loader were iterated so often, beginning now: its generators move by that."""
    view = _view(loader)
    generator = loader.generator if loader.generator is not None else torch.default_generator
    run = Run()
    for _ in range(number + 1):
        run.attend(view)
        epoch = run.begin(view, draw(generator), None)
    return epoch


def _view(loader: Any) -> Any:
    """What has to be known of a loader, torch's own included."""
    return SimpleNamespace(
        _index_sampler=loader._index_sampler, generator=loader.generator, dataset=loader.dataset, _is_iterable=False
    )
