"""Which pools take part. A peer is one way to use a library; it is imported in its seat only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.names import named

if TYPE_CHECKING:
    from bench.pools.contract import Open


@dataclass(frozen=True)
class PoolPeer:
    """`way` is the function that opens a pool, as ``module:function`` below this package."""

    name: str
    distribution: str  # "" for the standard library
    way: str
    library: str  # what a program imports for it

    def open(self) -> Open:
        """In a program that has imported torch, as those have that such a pool is for: its 170,000 objects are gone
        through by the garbage collector of all of them, or of none."""
        import torch  # noqa: F401

        way: Open = named(f"{__name__}.{self.way}")
        return way


_ALL = (
    PoolPeer("holdfast Pool", "holdfast", "ours:pool", "holdfast"),
    PoolPeer("holdfast Executor", "holdfast", "ours:executor", "holdfast"),
    PoolPeer("multiprocessing.Pool", "", "stock:fork", "multiprocessing.pool"),
    PoolPeer("multiprocessing.Pool, spawn", "", "stock:spawn", "multiprocessing.pool"),
    PoolPeer("torch.multiprocessing.Pool", "torch", "stock:torch_fork", "torch.multiprocessing"),
    PoolPeer("ProcessPoolExecutor", "", "stock:executor", "concurrent.futures.process"),
    PoolPeer("loky", "loky", "others:loky", "loky"),
    PoolPeer("joblib", "joblib", "others:joblib", "joblib"),
    PoolPeer("pebble", "pebble", "others:pebble", "pebble"),
    PoolPeer("mpire", "mpire", "others:mpire", "mpire"),
    PoolPeer("Ray", "ray", "cluster:tasks", "ray"),
    PoolPeer("Ray Pool", "ray", "cluster:pool", "ray.util.multiprocessing"),
)
POOLS = {peer.name: peer for peer in _ALL}
