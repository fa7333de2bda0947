"""What faults cost, and what a loader takes from a container: memory and descriptors."""

from __future__ import annotations

from bench.contest import Contest, Target
from bench.peers import PEERS, SHARED

CONTROL = "holdfast, no kills"  # the same epochs without kills
ONE_COPY = "one copy"  # of the array

# Threads have one copy by nature, and Ray a store of its own, of which this measurement would see nothing.
_HEAVY = (
    SHARED.name, "holdfast", "torch fork", "torch forkserver", "torch spawn", "StatefulDataLoader",
    "torchdata nodes, processes", "SPDL processes", "Grain processes",
)  # fmt: skip

CONTESTS = [
    Contest(
        "kills", "a worker is killed every 100 batches (quick: 20), 1 ms of work for a sample",
        "batches/s", "bench.measures.kills:kept", (*PEERS, CONTROL),
        settings={"work": "faulty:storm"}, targets={CONTROL: Target(0.9)}, rounds=4,
    ),
    Contest(
        "recovery", "from the kill of a worker to the batch that was lost by it",
        "ms", "bench.measures.kills:recovery", tuple(PEERS), better="less",
        settings={"work": "faulty:recovery"}, rounds=3,
    ),
    Contest(
        "array", "memory for a data set that is an array of 500 MB (quick: 200), 4 workers",
        "MB", "bench.measures.weight:start", (*_HEAVY, ONE_COPY), better="less", champion=SHARED.name,
        settings={"work": "array:array", "workers": 4}, targets={ONE_COPY: Target(1.05, at_most=True)},
        limits=(ONE_COPY,), rounds=1,
    ),
    Contest(
        "keeping", "descriptors for 4,000 kept batches (quick: 1,000)",
        "descriptors", "bench.measures.keeping:start", tuple(PEERS), better="less",
        settings={"work": "sized:sized"}, rounds=1,
    ),
]  # fmt: skip
