"""Pools of processes: small tasks, large ones, starts and deaths."""

from __future__ import annotations

from bench.contest import Contest, Target
from bench.pools import POOLS

_OURS = "holdfast Pool"
_FUTURES = dict.fromkeys(("ProcessPoolExecutor", "loky", "pebble"), "holdfast Executor")  # used as that is
_TENSORS = tuple(name for name in POOLS if name not in ("multiprocessing.Pool", "Ray Pool"))  # torch's is the former
_ALL = tuple(name for name in POOLS if name not in ("torch.multiprocessing.Pool", "Ray Pool"))
_SECOND = tuple(name for name in POOLS if name not in ("torch.multiprocessing.Pool", "Ray"))


def _large(kind: str, way: str, title: str, rival: str, bound: float) -> Contest:
    contenders = _ALL if kind == "numpy" else _TENSORS
    return Contest(
        f"pool-{kind}-{way}", title, "MB/s", f"bench.pools.large:start_{way}", contenders,
        champion=_OURS, beside=_FUTURES, settings={"kind": kind}, targets={rival: Target(bound)},
    )  # fmt: skip


CONTESTS = [
    Contest(
        "pool-map", "a map of 10,000 tiny tasks", "tasks/s", "bench.pools.rates:start_map", _ALL,
        champion=_OURS, beside=_FUTURES, targets={"multiprocessing.Pool": Target(1)}, quick=True,
    ),
    Contest(
        "pool-submit", "10,000 tiny tasks, each submitted", "tasks/s", "bench.pools.rates:start_submit", _ALL,
        champion="holdfast Executor", targets={"ProcessPoolExecutor": Target(2)},
        beside=dict.fromkeys(("multiprocessing.Pool", "multiprocessing.Pool, spawn", "mpire"), _OURS),  # `apply_async`
    ),
    Contest(
        "pool-call", "a call and its result", "µs", "bench.pools.rates:start_call", _ALL, better="less",
        champion=_OURS, beside=_FUTURES, targets={"multiprocessing.Pool": Target(0.5, at_most=True)},
    ),
    _large("numpy", "in", "100 MB array to a task", "multiprocessing.Pool", 6),
    _large("numpy", "out", "100 MB array from a task", "multiprocessing.Pool", 6),
    _large("tensor", "in", "100 MB tensor to a task", "torch.multiprocessing.Pool", 1.5),
    _large("tensor", "out", "100 MB tensor from a task", "torch.multiprocessing.Pool", 2),
    _large("tensor", "map", "a map of four 100 MB tensors", "torch.multiprocessing.Pool", 1.5),
    Contest(
        "pool-second", "a second pool of a program, to its first result", "ms", "bench.pools.starts:start_second",
        _SECOND, better="less", champion=_OURS, beside=_FUTURES, fresh=True,
    ),
    Contest(
        "pool-first", "the first pool of a program, to its first result", "ms", "bench.pools.starts:start_first",
        _ALL, better="less", champion=_OURS, beside=_FUTURES, rounds=3,
    ),
    Contest(
        "pool-kill", "the first result after the worker was killed", "ms", "bench.pools.kills:start_after_kill",
        _ALL, better="less", champion=_OURS, beside=_FUTURES, rounds=3,
    ),
    Contest(
        "pool-storm", "tasks of 3 ms while workers are killed for 3 s", "right", "bench.pools.kills:start_storm",
        _ALL, champion=_OURS, beside=_FUTURES, rounds=2, targets={"multiprocessing.Pool": Target(1)},
    ),
]  # fmt: skip
