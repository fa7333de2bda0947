"""What all measurements share: taking turns, loaders with and without holdfast, and one row of the table."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader as TorchLoader

WORKERS = 2


@dataclass(frozen=True)
class Options:
    """How thorough this run is."""

    rounds: int
    quick: bool
    full: bool
    memory_gb: float

    def scaled(self, full_size: int, quick_size: int) -> int:
        return quick_size if self.quick else full_size


@dataclass(frozen=True)
class Target:
    """A bound on the ratio."""

    bound: float
    at_most: bool = False

    def met_by(self, ratio: float) -> bool:
        return ratio <= self.bound if self.at_most else ratio >= self.bound

    def __str__(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {self.bound:g}"


@dataclass(frozen=True)
class Row:
    """One line of the table: holdfast and what it is compared with, in the same unit, and holdfast over the other.

    `ratio` is given where it is not `holdfast / baseline`. A row without figures says in `note` why there are none.
    """

    work: str
    baseline: str
    unit: str = ""
    baseline_figure: float | None = None
    holdfast_figure: float | None = None
    ratio: float | None = None
    target: Target | None = None
    note: str = ""

    @property
    def measured_ratio(self) -> float | None:
        if self.ratio is not None:
            return self.ratio
        if self.baseline_figure and self.holdfast_figure is not None:
            return self.holdfast_figure / self.baseline_figure
        return None

    @property
    def reached(self) -> bool | None:
        """None where there is nothing to reach, or nothing was measured."""
        if self.target is None or self.measured_ratio is None:
            return None
        return self.target.met_by(self.measured_ratio)

    def as_dict(self) -> dict[str, Any]:
        facts = asdict(self)
        facts.update(
            ratio=self.measured_ratio, target=None if self.target is None else str(self.target), reached=self.reached
        )
        return facts


def best_of(rounds: int, **contenders: Callable[[], float]) -> dict[str, float]:
    """The least seconds of each contender. They take turns, and every other round in reverse, so that a disturbance
    of the machine meets all of them and none always runs after the same other."""
    best = dict.fromkeys(contenders, float("inf"))
    for number in range(rounds):
        names = list(contenders)
        for name in reversed(names) if number % 2 else names:
            best[name] = min(best[name], contenders[name]())
    return best


def torch_loader(dataset: Any, batch_size: int, **options: Any) -> Any:
    """Stock torch, from fork unless asked otherwise: its fastest way, and no longer its default everywhere."""
    options.setdefault("multiprocessing_context", "fork")
    return TorchLoader(dataset, batch_size=batch_size, num_workers=WORKERS, **options)


def holdfast_loader(dataset: Any, batch_size: int, **options: Any) -> Any:
    # Imported when used: the container measurement runs torch's side in a process without holdfast.
    from holdfast import DataLoader

    return DataLoader(dataset, batch_size=batch_size, num_workers=WORKERS, **options)


def close(loader: Any) -> None:
    """End the workers of a loader whose workers persist."""
    loader._iterator = None
    gc.collect()


def consume(batches: Iterable[Any]) -> float:
    """Seconds for an epoch by a trainer that touches a little of each batch."""
    start = time.perf_counter()
    for values, _ in batches:
        values.view(-1)[::1024].sum()
    return time.perf_counter() - start


def warm_up(loader: Any, *, ordered: bool = True) -> None:
    """One epoch that is not timed, and the check that each sample came once and, where promised, in order."""
    indices: list[int] = []
    for _, numbers in loader:
        indices.extend(torch.as_tensor(numbers).tolist())
    if not ordered:
        indices.sort()
    if indices != list(range(len(loader.dataset))):
        raise AssertionError(f"{type(loader).__module__} did not deliver each sample once and in order")
