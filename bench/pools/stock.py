"""The standard library's pools, and torch's."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from bench.pools.contract import Function, OpenPool, Wanted


class Multiprocessed(OpenPool):
    """A pool in the manner of `multiprocessing.Pool`."""

    def __init__(self, wanted: Wanted, pool: Any) -> None:
        super().__init__(wanted)
        self.pool = pool

    def map(self, function: Function, items: Sequence[Any], *, chunks: bool = True) -> list[Any]:
        return self.pool.map(function, items, None if chunks else 1)

    def call(self, function: Function, *arguments: Any) -> Any:
        return self.pool.apply(function, arguments)

    def submit(self, function: Function, items: Sequence[Any]) -> list[Any]:
        return [self.pool.apply_async(function, (item,)) for item in items]

    def result(self, handle: Any, timeout: float | None = None) -> Any:
        return handle.get(timeout)

    def pids(self) -> list[int]:
        return [process.pid for process in list(self.pool._pool) if process.exitcode is None]

    def close(self) -> None:
        self.pool.terminate()
        self.pool.join()


class Futures(OpenPool):
    """An executor in the manner of `concurrent.futures`."""

    def __init__(self, wanted: Wanted, executor: Any) -> None:
        super().__init__(wanted)
        self.executor = executor

    def map(self, function: Function, items: Sequence[Any], *, chunks: bool = True) -> list[Any]:
        return list(self.executor.map(function, items, chunksize=self.chunk(len(items), chunks)))

    def call(self, function: Function, *arguments: Any) -> Any:
        return self.executor.submit(function, *arguments).result()

    def submit(self, function: Function, items: Sequence[Any]) -> list[Any]:
        return [self.executor.submit(function, item) for item in items]

    def result(self, handle: Any, timeout: float | None = None) -> Any:
        return handle.result(timeout)

    def pids(self) -> list[int]:
        return list(self.executor._processes or ())

    def close(self) -> None:
        self.executor.shutdown(cancel_futures=True)


def fork(wanted: Wanted) -> OpenPool:
    return Multiprocessed(wanted, multiprocessing.get_context("fork").Pool(wanted.workers))


def spawn(wanted: Wanted) -> OpenPool:
    return Multiprocessed(wanted, multiprocessing.get_context("spawn").Pool(wanted.workers))


def torch_fork(wanted: Wanted) -> OpenPool:
    """With torch's way of sending tensors, which `torch.multiprocessing` teaches all of `multiprocessing`."""
    import torch.multiprocessing

    return Multiprocessed(wanted, torch.multiprocessing.get_context("fork").Pool(wanted.workers))


def executor(wanted: Wanted) -> OpenPool:
    return Futures(wanted, ProcessPoolExecutor(wanted.workers, mp_context=multiprocessing.get_context("fork")))
