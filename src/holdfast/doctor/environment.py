"""What the machine, the container and this process are like, as far as a data pipeline cares. Facts; ``fitness`` judges
them.

torch is asked only where it was imported anyway: `holdfast env` has to be quick. Nothing here waits for storage that
does not answer.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from holdfast._system import limits, mounts
from holdfast._system.allowances import Allowances, allowances
from holdfast._system.cpus import Cpus, cpus
from holdfast._system.leftovers import SHARED_MEMORY, Leftovers, leftovers
from holdfast._system.mounts import Place
from holdfast._system.signals import Signals, signals
from holdfast._system.visibility import Visibility, visibility
from holdfast.targets.target import Target

from .fitness import symptoms_of
from .needs import start_method

__all__ = ["Environment", "Memory", "Room", "Torch", "environment", "symptoms_of"]

_PACKAGES = (
    *("holdfast", "torch", "numpy", "cloudpickle", "psutil", "torchvision", "torchaudio", "torchdata"),
    *("lightning", "pytorch-lightning", "accelerate", "transformers", "datasets", "webdataset", "tensordict"),
    *("pillow", "opencv-python", "opencv-python-headless", "h5py", "lmdb", "pandas", "pyarrow"),
)
_THREAD_SETTINGS = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
    *("KMP_AFFINITY", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY"),
)
_MOST_PLACES = 16  # of a data set that are looked for
_PATIENCE = 1.0  # seconds that storage has to answer


@dataclass(frozen=True)
class Room:
    """Bytes of a place."""

    size: int
    free: int


@dataclass(frozen=True)
class Memory:
    """``available`` is what can still be used, of the machine and of the container, whichever is less."""

    available: int
    machine: int
    limit: int | None = None  # of the container
    oom_kills: int | None = None  # in this container; None: it does not count them


@dataclass(frozen=True)
class Torch:
    """What torch says of itself, where it has been imported."""

    threads: int
    sharing: str
    cuda_is_initialized: bool


@dataclass(frozen=True)
class Environment:
    """``local_ranks`` are the processes that train together on this machine, each with workers of its own."""

    versions: dict[str, str]
    system: str
    cpus: Cpus
    memory: Memory
    shared_memory: Room | None  # /dev/shm
    allowances: Allowances
    signals: Signals
    visibility: Visibility
    start_method: str
    local_ranks: int
    thread_settings: dict[str, str]
    torch: Torch | None
    places: tuple[Place, ...]
    leftovers: Leftovers

    @property
    def cpu_budget(self) -> float:
        """CPUs for this process and its workers."""
        return self.cpus.allowed / self.local_ranks

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = _plain(self)
        return plain | {"cpu_budget": self.cpu_budget}


def environment(target: Target | None = None) -> Environment:
    """As it is now. With a target also the storage that its data lies on."""
    return Environment(
        versions=_versions(),
        system=platform.platform(),
        cpus=cpus(),
        memory=_memory(),
        shared_memory=_room(SHARED_MEMORY),
        allowances=allowances(),
        signals=signals(),
        visibility=visibility(),
        start_method=start_method(),
        local_ranks=_local_ranks(),
        thread_settings={name: os.environ[name] for name in _THREAD_SETTINGS if name in os.environ},
        torch=_torch(),
        places=tuple(_places(target)) if target else (),
        leftovers=leftovers(),
    )


def _versions() -> dict[str, str]:
    found = {"python": f"{platform.python_version()} ({platform.python_implementation()})"}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return found


def _memory() -> Memory:
    import psutil

    groups = limits.memory_groups()
    bounds = [limit for group in groups if (limit := group.limit()) is not None]
    kills = next((count for group in groups if (count := group.oom_kills()) is not None), None)
    return Memory(limits.memory_room(), int(psutil.virtual_memory().total), min(bounds, default=None), kills)


def _room(folder: str) -> Room | None:
    try:
        told = os.statvfs(folder)
    except (AttributeError, OSError):  # not on Windows; not there
        return None
    return Room(told.f_blocks * told.f_frsize, told.f_bavail * told.f_frsize)


def _local_ranks() -> int:
    told = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, int(told)) if told.isdigit() else 1


def _torch() -> Torch | None:
    if "torch.multiprocessing" not in sys.modules:
        return None
    import torch

    return Torch(torch.get_num_threads(), torch.multiprocessing.get_sharing_strategy(), torch.cuda.is_initialized())


def _places(target: Target) -> list[Place]:
    from holdfast.audit.paths import is_absolute, texts

    paths = [text for _, text in texts(target.dataset) if is_absolute(text)]
    return mounts.look_at(paths[:_MOST_PLACES], _PATIENCE)


def _plain(value: Any) -> Any:
    """As JSON has it; named tuples by name."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif hasattr(value, "__dataclass_fields__"):
        value = {name: getattr(value, name) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(member) for member in value] if isinstance(value, tuple) else value
