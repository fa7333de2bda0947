"""The contract of the pools: what is done with one, whoever made it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True)
class Wanted:
    """How a pool is opened. A pool that does not know one of these leaves it."""

    workers: int = 2
    retries: int = 0  # of a task whose worker died
    task_timeout: float | None = None  # seconds that a task may take


class OpenPool(ABC):
    """A pool that is open. Handles are whatever the pool gives for a task that was submitted."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted

    @abstractmethod
    def map(self, function: Function, items: Sequence[Any], *, chunks: bool = True) -> list[Any]:
        """The results in order. `chunks`: as many at a time as the pool chooses; where it leaves that to the user,
        four chunks for each worker. Otherwise one at a time."""

    @abstractmethod
    def call(self, function: Function, *arguments: Any) -> Any:
        """The result of one call, waited for."""

    @abstractmethod
    def submit(self, function: Function, items: Sequence[Any]) -> list[Any]:
        """A handle for each item, each a task of its own."""

    @abstractmethod
    def result(self, handle: Any, timeout: float | None = None) -> Any:
        """What became of a handle. A `TimeoutError`, or one of the pool's own, when it has not come in time."""

    def results(self, handles: Sequence[Any]) -> list[Any]:
        return [self.result(handle) for handle in handles]

    @abstractmethod
    def pids(self) -> list[int]:
        """The workers that there are now."""

    @abstractmethod
    def close(self) -> None:
        """Ends it with its workers."""

    def chunk(self, count: int, chunks: bool) -> int:
        return -(-count // (4 * self.wanted.workers)) if chunks else 1


Open = Callable[[Wanted], OpenPool]
