"""``DistributedSampler``: torch's, whose order does not depend on the number of ranks, and whose tail can be exact."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed
import torch.utils.data

from .dealing import Deal, Tail, check_tail, evened, wrapped


class DistributedSampler(torch.utils.data.DistributedSampler[int]):
    """Deals the samples of a data set to the ranks of a distributed run; put it in torch's place.

    ::

        sampler = DistributedSampler(dataset, tail="exact")
        loader = DataLoader(dataset, batch_size=32, sampler=sampler)

    Each epoch has one global order, drawn from ``seed + epoch`` alone, which all ranks together take from its beginning
    to its end. So a run that is saved on 2 ranks goes on with 4, 3 or 1. When nobody calls ``set_epoch``, holdfast's
    loader counts the epochs; with torch's, every epoch has the same order.

    Args:
        num_replicas: how many ranks; of torch's process group if there is one, else ``WORLD_SIZE`` as torchrun sets it,
            else 1.
        rank: which of them this is; in the same way, from ``RANK``.
        seed: the same on all ranks.
        drop_last: another word for ``tail="drop"``.
        tail: what becomes of samples at the end that do not go round. Every rank has the same number of batches:

            - ``"pad"``, as torch does: up to ``num_replicas - 1`` samples are given twice; of a data set with fewer
              samples than ranks, more often.
            - ``"drop"``: up to ``num_replicas - 1`` samples are left out.
            - ``"exact"``: each sample once. At the end some ranks' batches are one sample smaller than those of others,
              which a mean over ranks has to allow for. It is a ``ValueError`` where a rank would get an empty batch:
              with fewer samples than ranks, and with ``batch_size=1`` unless they go round. This is for holdfast's
              loader: in torch's, some ranks get one sample more than others, and maybe one batch more.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        *,
        tail: Tail | None = None,
    ) -> None:
        world, rank = _place(num_replicas, rank)
        self.tail: Tail = _chosen(tail, drop_last)
        self._size = _size_of(dataset)
        super().__init__(dataset, world, rank, shuffle, seed, self.tail == "drop")
        self.total_size = evened(self._size, world, self.tail)
        self.num_samples = len(self._positions)
        self.epoch_is_set = False
        """Whether ``set_epoch`` was ever called. If not, somebody else has to count."""
        self._drawn: tuple[int, torch.Tensor] | None = None

    def __iter__(self) -> Iterator[int]:
        self._check_size()
        return iter(self.indices(wrapped(self._positions, self._size)))

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch the next iteration is of, on every rank the same."""
        super().set_epoch(epoch)
        self.epoch_is_set = True

    def deal(self, batch_size: int, *, drop_last: bool = False, offset: int = 0) -> Deal:
        """How this rank's batches are dealt, in any epoch, beginning at ``offset`` of the global order."""
        self._check_size()
        return Deal(self._size, self.num_replicas, self.rank, batch_size, self.tail, offset, drop_last)

    def order(self, epoch: int | None = None) -> torch.Tensor | range:
        """The global order of an epoch (None: the one that is set), the same on all ranks; not to be written to."""
        if not self.shuffle:
            return range(self._size)
        seed = self.seed + (self.epoch if epoch is None else epoch)
        if self._drawn is None or self._drawn[0] != seed:
            self._drawn = seed, _permutation(self._size, seed)
        return self._drawn[1]

    def indices(self, positions: Sequence[int], epoch: int | None = None) -> list[int]:
        """The samples at these positions of the global order."""
        order = self.order(epoch)
        if isinstance(order, range):
            return list(positions)
        if isinstance(positions, range):  # as a slice it is a view, and much faster
            return order[positions.start : positions.stop : positions.step].tolist()
        return order[positions].tolist()

    @property
    def _positions(self) -> range:
        """All of this rank's, as far as it can be said without the size of a batch."""
        return range(self.rank, self.total_size, self.num_replicas)

    def _check_size(self) -> None:
        size = len(self.dataset)  # type: ignore[arg-type]  # torch's Dataset promises no length
        if size != self._size:
            raise ValueError(f"the data set has {size} samples, and had {self._size} when this sampler was made of it")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_drawn": None}  # it is drawn again sooner than sent


def _permutation(size: int, seed: int) -> torch.Tensor:
    # On the CPU whatever the default device is: the generator is there, and the order is one for all.
    generator = torch.Generator(device="cpu")
    generator.manual_seed(seed)
    return torch.randperm(size, generator=generator, device="cpu")


def _chosen(tail: Tail | None, drop_last: bool) -> Tail:
    if tail is None:
        return "drop" if drop_last else "pad"
    check_tail(tail)
    if drop_last and tail != "drop":
        raise ValueError(f"drop_last=True is another word for tail='drop', but got tail={tail!r} with it")
    return tail


def _size_of(dataset: Any) -> int:
    size = len(dataset)
    if not size:
        raise ValueError(f"the data set ({type(dataset).__name__}) is empty: there is nothing to deal to the ranks")
    return size


def _place(world: int | None, rank: int | None) -> tuple[int, int]:
    """Number of ranks and this rank: as given, else of the process group, else from the environment, else alone."""
    group = torch.distributed
    if group.is_available() and group.is_initialized():
        world = group.get_world_size() if world is None else world
        rank = group.get_rank() if rank is None else rank
    if world is None:
        world = _environment("WORLD_SIZE", 1)
    if rank is None:
        rank = _environment("RANK", 0 if world == 1 else None)
    if world < 1:
        raise ValueError(f"num_replicas should be at least 1, but got num_replicas={world}")
    return world, rank


def _environment(name: str, default: int | None) -> int:
    value = os.environ.get(name)
    if value is None and default is not None:
        return default
    try:
        return int(value or "")
    except ValueError:
        told = "is not set" if value is None else f"is {value!r}"
        raise ValueError(
            f"which rank of how many this is cannot be told: there is no process group, and {name} {told} in the "
            "environment. Give num_replicas and rank, or make the sampler after torch.distributed.init_process_group"
        ) from None
