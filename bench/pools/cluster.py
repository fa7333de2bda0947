"""Ray, as a cluster of one machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

os.environ["RAY_ENABLE_ZERO_COPY_TORCH_TENSORS"] = "1"  # read when it is imported, here and in its workers
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray

from bench.pools.contract import Function, OpenPool, Wanted
from bench.pools.stock import Multiprocessed

STORE = 2 << 30  # bytes of shared memory


class _Tasks(OpenPool):
    """Remote functions, its fast way. Small items go many to a task, as its documentation advises."""

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted)
        _start_cluster(wanted)
        self._remote = cache(self._make_remote)

    def map(self, function: Function, items: Sequence[Any], *, chunks: bool = True) -> list[Any]:
        if not chunks:
            return self.results(self.submit(function, items))
        size, run = self.chunk(len(items), chunks), self._remote(_run_all)
        parts = [run.remote(function, items[first : first + size]) for first in range(0, len(items), size)]
        return [value for part in ray.get(parts) for value in part]

    def call(self, function: Function, *arguments: Any) -> Any:
        return ray.get(self._remote(function).remote(*arguments))

    def submit(self, function: Function, items: Sequence[Any]) -> list[Any]:
        run = self._remote(function)
        return [run.remote(item) for item in items]

    def result(self, handle: Any, timeout: float | None = None) -> Any:
        return ray.get(handle, timeout=timeout)

    def results(self, handles: Sequence[Any]) -> list[Any]:
        return ray.get(list(handles))

    def pids(self) -> list[int]:
        return _workers_below(os.getpid())

    def close(self) -> None:
        ray.shutdown()

    def _make_remote(self, function: Function) -> Any:
        options = {"max_retries": self.wanted.retries} if self.wanted.retries else {}
        return ray.remote(function).options(**options)


class _Pool(Multiprocessed):
    """Its `multiprocessing.Pool`, whose workers are actors. The cluster stays when it is closed."""

    def pids(self) -> list[int]:
        return _workers_below(os.getpid())


def tasks(wanted: Wanted) -> OpenPool:
    return _Tasks(wanted)


def pool(wanted: Wanted) -> OpenPool:
    from ray.util.multiprocessing import Pool

    _start_cluster(wanted)
    return _Pool(wanted, Pool(wanted.workers))


def _run_all(function: Function, items: Sequence[Any]) -> list[Any]:
    return [function(item) for item in items]


def _start_cluster(wanted: Wanted) -> None:
    if not ray.is_initialized():
        ray.init("local", num_cpus=wanted.workers, include_dashboard=False, log_to_driver=False,
                 object_store_memory=STORE, logging_level="ERROR")  # fmt: skip


def _workers_below(ancestor: int) -> list[int]:
    """Processes that descend from this one and call themselves Ray's, without its agents."""
    parents: dict[int, int] = {}
    workers = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            name = (entry / "cmdline").read_bytes()
            if name.startswith(b"ray::") and b"Agent" not in name:
                workers.append(int(entry.name))
        except OSError:
            continue  # it has ended meanwhile
    return [pid for pid in workers if _descends(pid, ancestor, parents)]


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != ancestor:
        pid = parents[pid]
    return pid == ancestor
