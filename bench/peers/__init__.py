"""Who takes part. A peer is one way to use a library; it is imported in its seat only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.names import named

if TYPE_CHECKING:
    from bench.works.work import Open


@dataclass(frozen=True)
class Peer:
    """`way` is the function that opens a work, as ``module:function`` below this package."""

    name: str
    distribution: str
    way: str

    def open(self) -> Open:
        way: Open = named(f"{__name__}.{self.way}")
        return way


_ALL = (
    Peer("holdfast", "holdfast", "ours:processes"),
    Peer("holdfast threads", "holdfast", "ours:threads"),
    Peer("torch fork", "torch", "stock:fork"),
    Peer("torch fork, unordered", "torch", "stock:unordered"),
    Peer("torch forkserver", "torch", "stock:forkserver"),
    Peer("torch spawn", "torch", "stock:spawn"),
    Peer("StatefulDataLoader", "torchdata", "torchdata:stateful"),
    Peer("torchdata nodes, threads", "torchdata", "torchdata:threads"),
    Peer("torchdata nodes, processes", "torchdata", "torchdata:processes"),
    Peer("SPDL threads", "spdl", "spdl:threads"),
    Peer("SPDL processes", "spdl", "spdl:processes"),
    Peer("Grain threads", "grain", "grain:threads"),
    Peer("Grain processes", "grain", "grain:processes"),
    Peer("Ray Data", "ray", "ray:tasks"),
    Peer("LitData", "litdata", "litdata:workers"),
    Peer("MosaicML Streaming", "mosaicml-streaming", "streaming:workers"),
    Peer("WebDataset", "webdataset", "webdataset:workers"),
)
PEERS = {peer.name: peer for peer in _ALL}
# Other ways to use holdfast, for the contests where they matter: memory, and the start of a program.
SHARED = Peer("holdfast, shared", "holdfast", "ours:shared")
WARMED = Peer("holdfast, warmed", "holdfast", "ours:processes")
# What differs only in how it starts, or in what order it gives, is in the contests where that matters. Ray starts a
# cluster for each contest, and is in those that are nearest to what it is made for.
_SOME = ("torch forkserver", "torch spawn", "torch fork, unordered", "Ray Data")
WARM = tuple(name for name in PEERS if name not in _SOME)
# Threads are compared with threads.
BESIDE = {name: "holdfast threads" for name in PEERS if name.endswith("threads") and name != "holdfast threads"}
# For a quick run: the fastest way to use each library that has several.
QUICK = (
    "holdfast", "holdfast threads", "torch fork", "torch spawn", "StatefulDataLoader", "torchdata nodes, threads",
    "SPDL threads", "Grain processes", "LitData", "MosaicML Streaming", "WebDataset",
)  # fmt: skip
