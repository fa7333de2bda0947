"""holdfast: data loading for PyTorch that holds.

Change the import, keep the code::

    from holdfast import DataLoader
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "AllSamplesBad",
    "CannotSend",
    "CannotShare",
    "CannotShip",
    "CannotShipToRanks",
    "Counter",
    "DataLoader",
    "Debug",
    "DistributedSampler",
    "EmptyDataset",
    "Executor",
    "Fault",
    "HoldfastError",
    "HoldfastWarning",
    "IteratorPerStep",
    "Ledger",
    "LoadedTooLate",
    "LoaderTimeout",
    "NoPrompt",
    "NoneSample",
    "NotAdopted",
    "NotThere",
    "Policy",
    "Pool",
    "PoolBroken",
    "Quarantine",
    "Raise",
    "RankExited",
    "RankRaised",
    "ReadOnlyShared",
    "RemoteError",
    "RepeatedRandom",
    "Replace",
    "RestartsSpent",
    "ResultLost",
    "Retry",
    "SharedGone",
    "SharedHandle",
    "SharedMemoryFull",
    "Skip",
    "StateMismatch",
    "StateTooNew",
    "StopInItem",
    "StreamDiffers",
    "StreamLost",
    "TaskDied",
    "TaskExited",
    "TaskTimeout",
    "TooManyFaults",
    "Unaccounted",
    "UnequalSamples",
    "UnsavableState",
    "UnshardedStream",
    "Verdict",
    "Wait",
    "WorkerDied",
    "WorkerStalled",
    "get_worker_info",
    "lock_of",
    "manifest",
    "per_worker",
    "share",
    "spawn",
    "wait_for",
    "warm",
]

_HOMES = {
    "Counter": "counter",
    "DataLoader": "loader",
    "Debug": "policies",
    "DistributedSampler": "sampling.distributed",
    "Executor": "tasks.executor",
    "Fault": "fault",
    "Ledger": "ledger",
    "Policy": "policies",
    "Pool": "tasks.pool",
    "Quarantine": "quarantine",
    "Raise": "policies",
    "Replace": "policies",
    "Retry": "policies",
    "Skip": "policies",
    "Wait": "policies",
    "get_worker_info": "_worker.info",
    "lock_of": "sharing",
    "manifest": "inventory",
    "per_worker": "recipe",
    "share": "sharing",
    "spawn": "ranks.spawning",
    "wait_for": "storage",
    "warm": "warming",
}

if TYPE_CHECKING:
    from ._worker.info import get_worker_info
    from .counter import Counter
    from .errors import (
        AllSamplesBad,
        CannotSend,
        CannotShare,
        CannotShip,
        CannotShipToRanks,
        EmptyDataset,
        HoldfastError,
        HoldfastWarning,
        IteratorPerStep,
        LoadedTooLate,
        LoaderTimeout,
        NoneSample,
        NoPrompt,
        NotAdopted,
        NotThere,
        PoolBroken,
        RankExited,
        RankRaised,
        ReadOnlyShared,
        RemoteError,
        RepeatedRandom,
        RestartsSpent,
        ResultLost,
        SharedGone,
        SharedHandle,
        SharedMemoryFull,
        StateMismatch,
        StateTooNew,
        StopInItem,
        StreamDiffers,
        StreamLost,
        TaskDied,
        TaskExited,
        TaskTimeout,
        TooManyFaults,
        Unaccounted,
        UnequalSamples,
        UnsavableState,
        UnshardedStream,
        Verdict,
        WorkerDied,
        WorkerStalled,
    )
    from .fault import Fault
    from .inventory import manifest
    from .ledger import Ledger
    from .loader import DataLoader
    from .policies import Debug, Policy, Raise, Replace, Retry, Skip, Wait
    from .quarantine import Quarantine
    from .ranks.spawning import spawn
    from .recipe import per_worker
    from .sampling.distributed import DistributedSampler
    from .sharing import lock_of, share
    from .storage import wait_for
    from .tasks.executor import Executor
    from .tasks.pool import Pool
    from .warming import warm


def __getattr__(name: str) -> Any:
    # Late, so that the rooms that need no torch (the core, the zygote's first moments) do not import it.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from ._system.collector import at_rest

    with at_rest():
        value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
