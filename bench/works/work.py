"""The contract between works and peers: what is loaded, and how a peer gives it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch

PAGE = 4096  # bytes


@dataclass(frozen=True)
class Stored:
    """The same samples as records, for peers that read only files of their own making."""

    record: Callable[[int], dict[str, Any]]  # bytes, int or array by the name of the field
    sample: Callable[[dict[str, Any]], Any]  # from such a record


def numbers_of(batch: Any) -> list[int]:
    """The samples of a batch, where each is a tuple that ends with its index."""
    return torch.as_tensor(batch[-1]).tolist()


def touch_values(batch: Any) -> None:
    """A trainer that looks at one number of each page."""
    values = batch[0].view(-1)
    values[:: PAGE // values.element_size()].sum()


@dataclass(frozen=True)
class Work:
    """An epoch to be loaded. Everything in it can be pickled, as workers may be spawned."""

    dataset: Any  # map-style; when `stream`, an IterableDataset that has `part(number, of)` for a worker's share
    batch_size: int
    length: int  # samples in an epoch
    collate: Callable[[list[Any]], Any] | None = None  # None: torch's default_collate
    numbers: Callable[[Any], list[int]] = numbers_of
    touch: Callable[[Any], None] = touch_values
    workers: int = 2
    stream: bool = False
    shuffle: bool = False
    stateful: bool = False  # the state amid an epoch will be asked for, after any batch
    stored: Stored | None = None  # None: cannot be stored
    patience: float = 0.0  # seconds for a batch or sample, for peers that can be given a limit; 0: none
    unit: int = 0  # what counts as one: 1 for samples, 0 for batches
    variant: str = ""  # tells apart what is stored of works with the same name
    name: str = ""
    directory: str = ""  # for files that a peer makes of it
    samples_only: bool = False  # the limit is to make the samples, each on its own; batches of them add next to nothing

    @property
    def batches(self) -> int:
        return -(-self.length // self.batch_size)

    @property
    def amount(self) -> int:
        return self.length if self.unit else self.batches

    def but(self, **changes: Any) -> Work:
        return dataclasses.replace(self, **changes)


class Loader(Protocol):
    """What a peer makes of a work. Each `iter` is an epoch; workers persist from one to the next where they can."""

    ordered: bool

    def __iter__(self) -> Iterator[Any]: ...

    def close(self) -> None: ...


Open = Callable[[Work], Loader]
