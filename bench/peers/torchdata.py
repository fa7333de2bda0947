"""torchdata: StatefulDataLoader, and nodes with threads and with processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from torch.utils.data import BatchSampler, DistributedSampler, default_collate
from torchdata.nodes import BaseNode, Batcher, IterableWrapper, ParallelMapper, SamplerWrapper
from torchdata.nodes import Loader as Nodes
from torchdata.stateful_dataloader import StatefulDataLoader

from bench.contest import Cannot
from bench.peers.batches import Batches, index_batches
from bench.peers.common import Persistent
from bench.works.work import Loader, Work


def stateful(work: Work) -> Loader:
    """Without checkpoints amid an epoch unless they are asked for."""
    loader = StatefulDataLoader(
        work.dataset, work.batch_size, collate_fn=work.collate, num_workers=work.workers,
        shuffle=work.shuffle or None, persistent_workers=True, multiprocessing_context="fork",
        snapshot_every_n_steps=1 if work.stateful else work.batches, timeout=work.patience,
    )  # fmt: skip
    return Persistent(loader)


def threads(work: Work) -> Loader:
    """A stream is read by the one thread that feeds the others, which collate, as the guide to migration has it."""
    if work.stream:
        items = Batcher(IterableWrapper(work.dataset), work.batch_size, drop_last=False)
        return Graph(_mapped(items, work.collate or default_collate, work, "thread"))
    return Graph(_mapped(_indices(work), Batches(work), work, "thread"))


def processes(work: Work) -> Loader:
    """The processes are started anew for each epoch: nodes know no other way."""
    if work.stream:
        raise Cannot("a stream is read in the main process; worker processes can only map what that has read")
    return Graph(_mapped(_indices(work), Batches(work), work, "process"))


def _indices(work: Work) -> BaseNode[Any]:
    """Where a state is asked for, by a sampler whose order follows from the epoch's number: nodes save that number and
    how many batches were taken, and nothing of an iterator."""
    return SamplerWrapper(OfEpoch(work)) if work.stateful else IterableWrapper(index_batches(work))


class OfEpoch(BatchSampler):
    def __init__(self, work: Work) -> None:
        self.order = DistributedSampler(range(work.length), num_replicas=1, rank=0, shuffle=work.shuffle)
        super().__init__(self.order, work.batch_size, drop_last=False)

    def set_epoch(self, epoch: int) -> None:
        self.order.set_epoch(epoch)


def _mapped(source: Any, load: Any, work: Work, method: Literal["thread", "process"]) -> ParallelMapper[Any]:
    """Without checkpoints amid an epoch, as above."""
    return ParallelMapper(
        source, load, num_workers=work.workers, in_order=True, method=method,
        multiprocessing_context="fork" if method == "process" else None,
        snapshot_frequency=1 if work.stateful else work.batches,
    )  # fmt: skip


class Graph:
    """A graph of nodes, gone through once for each epoch."""

    ordered = True

    def __init__(self, root: BaseNode[Any]) -> None:
        self._root = root
        self._loader = Nodes(root)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._loader)

    def state_dict(self) -> Any:
        return self._loader.state_dict()

    def load_state_dict(self, state: Any) -> None:
        self._loader.load_state_dict(state)

    def close(self) -> None:
        del self._loader
        if getattr(self._root, "_it", None) is not None:
            self._root._it = None  # its threads and processes end with it
