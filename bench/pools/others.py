"""loky, joblib, pebble and mpire."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from typing import Any

from bench.contest import Cannot
from bench.pools.contract import Function, OpenPool, Wanted
from bench.pools.stock import Futures


class _Loky(Futures):
    """The executor is asked for at each use, as its documentation has it: a broken one is replaced by a new one."""

    def map(self, function: Function, items: Sequence[Any], *, chunks: bool = True) -> list[Any]:
        self._refresh()
        return super().map(function, items, chunks=chunks)

    def call(self, function: Function, *arguments: Any) -> Any:
        self._refresh()
        return super().call(function, *arguments)

    def submit(self, function: Function, items: Sequence[Any]) -> list[Any]:
        self._refresh()
        return super().submit(function, items)

    def close(self) -> None:
        self.executor.shutdown(kill_workers=True)

    def _refresh(self) -> None:
        from loky import get_reusable_executor

        self.executor = get_reusable_executor(max_workers=self.wanted.workers)


class _Joblib(OpenPool):
    """Within a context, which keeps the workers, and with the size of its batches left to it. It has two workers at
    least: for one it would call the function itself."""

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted)
        self._by_chunks: dict[bool, Any] = {}
        if wanted.task_timeout is not None:  # which would count the start of the workers, too
            _Joblib(Wanted(wanted.workers)).map(abs, range(4), chunks=False)

    def map(self, function: Function, items: Sequence[Any], *, chunks: bool = True) -> list[Any]:
        from joblib import delayed

        call = delayed(function)
        return list(self._parallel(chunks)(call(item) for item in items))

    def call(self, function: Function, *arguments: Any) -> Any:
        from joblib import delayed

        return self._parallel(False)([delayed(function)(*arguments)])[0]

    def submit(self, function: Function, items: Sequence[Any]) -> list[Any]:
        raise Cannot("there are no single tasks: all are given at once")

    def result(self, handle: Any, timeout: float | None = None) -> Any:
        raise Cannot("there are no single tasks: all are given at once")

    def pids(self) -> list[int]:
        from joblib.externals.loky import reusable_executor

        executor = reusable_executor._executor
        return [] if executor is None else list(executor._processes or ())

    def close(self) -> None:
        from joblib.externals.loky import reusable_executor

        for parallel in self._by_chunks.values():
            parallel.__exit__(None, None, None)
        if reusable_executor._executor is not None:
            reusable_executor._executor.shutdown(kill_workers=True)

    def _parallel(self, chunks: bool) -> Any:
        from joblib import Parallel

        if chunks not in self._by_chunks:
            size, timeout = "auto" if chunks else 1, self.wanted.task_timeout
            parallel = Parallel(max(2, self.wanted.workers), "loky", batch_size=size, timeout=timeout)
            self._by_chunks[chunks] = parallel.__enter__()
        return self._by_chunks[chunks]


class _Pebble(OpenPool):
    def __init__(self, wanted: Wanted, pool: Any) -> None:
        super().__init__(wanted)
        self._pool = pool

    def map(self, function: Function, items: Sequence[Any], *, chunks: bool = True) -> list[Any]:
        return list(self._pool.map(function, items, chunksize=self.chunk(len(items), chunks)).result())

    def call(self, function: Function, *arguments: Any) -> Any:
        return self._pool.schedule(function, arguments, timeout=self.wanted.task_timeout).result()

    def submit(self, function: Function, items: Sequence[Any]) -> list[Any]:
        return [self._pool.schedule(function, (item,), timeout=self.wanted.task_timeout) for item in items]

    def result(self, handle: Any, timeout: float | None = None) -> Any:
        return handle.result(timeout)

    def pids(self) -> list[int]:
        return list(self._pool._pool_manager.worker_manager.workers)

    def close(self) -> None:
        self._pool.stop()
        self._pool.join()


class _Mpire(OpenPool):
    """Items are wrapped in tuples, as it would unpack those that can be iterated over."""

    def __init__(self, wanted: Wanted, pool: Any) -> None:
        super().__init__(wanted)
        self._pool = pool

    def map(self, function: Function, items: Sequence[Any], *, chunks: bool = True) -> list[Any]:
        return list(self._pool.map(function, [(item,) for item in items], chunk_size=None if chunks else 1))

    def call(self, function: Function, *arguments: Any) -> Any:
        return self._pool.apply(function, arguments, task_timeout=self.wanted.task_timeout)

    def submit(self, function: Function, items: Sequence[Any]) -> list[Any]:
        timeout = self.wanted.task_timeout
        return [self._pool.apply_async(function, (item,), task_timeout=timeout) for item in items]

    def result(self, handle: Any, timeout: float | None = None) -> Any:
        return handle.get(timeout)

    def pids(self) -> list[int]:
        return [process.pid for process in list(self._pool._workers) if process is not None and process.is_alive()]

    def close(self) -> None:
        self._pool.terminate()


def loky(wanted: Wanted) -> OpenPool:
    from loky import get_reusable_executor

    return _Loky(wanted, get_reusable_executor(max_workers=wanted.workers))


def joblib(wanted: Wanted) -> OpenPool:
    return _Joblib(wanted)


def pebble(wanted: Wanted) -> OpenPool:
    from pebble import ProcessPool

    return _Pebble(wanted, ProcessPool(wanted.workers, context=multiprocessing.get_context("fork")))


def mpire(wanted: Wanted) -> OpenPool:
    from mpire import WorkerPool

    return _Mpire(wanted, WorkerPool(wanted.workers, start_method="fork", keep_alive=True))
