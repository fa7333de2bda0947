"""holdfast: data loading for PyTorch that holds.

Change the import, keep the code::

    from holdfast import DataLoader
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "CannotSend",
    "CannotShip",
    "DataLoader",
    "HoldfastError",
    "LoaderTimeout",
    "RemoteError",
    "RestartsSpent",
    "SharedMemoryFull",
    "Verdict",
    "WorkerDied",
    "get_worker_info",
    "warm",
]

_HOMES = {"DataLoader": "loader", "warm": "warming", "get_worker_info": "_worker.info"}

if TYPE_CHECKING:
    from ._worker.info import get_worker_info
    from .errors import (
        CannotSend,
        CannotShip,
        HoldfastError,
        LoaderTimeout,
        RemoteError,
        RestartsSpent,
        SharedMemoryFull,
        Verdict,
        WorkerDied,
    )
    from .loader import DataLoader
    from .warming import warm


def __getattr__(name: str) -> Any:
    # Late, so that the rooms that need no torch (the core, the zygote's first moments) do not import it.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
