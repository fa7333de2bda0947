"""holdfast's own."""

from __future__ import annotations

from bench.pools.contract import OpenPool, Wanted
from bench.pools.stock import Futures, Multiprocessed
from holdfast import Executor, Pool


class _Pool(Multiprocessed):
    def pids(self) -> list[int]:
        return [process.pid for process in self.pool.processes if process.is_alive()]


class _Executor(Futures):
    def pids(self) -> list[int]:
        return [process.pid for process in self.executor.processes if process.is_alive()]


def pool(wanted: Wanted) -> OpenPool:
    return _Pool(wanted, Pool(wanted.workers, retries=wanted.retries, task_timeout=wanted.task_timeout))


def executor(wanted: Wanted) -> OpenPool:
    return _Executor(wanted, Executor(wanted.workers, retries=wanted.retries, task_timeout=wanted.task_timeout))
