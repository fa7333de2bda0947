"""torch, in a process that may do without it: what is to be done with it as soon as it is there.

To import it takes a second and 150 MB. A worker of a pool whose functions have nothing to do with it should not wait
for that, and behave as all others do if it comes after all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_waiting: list[Callable[[], object]] = []


def is_here() -> bool:
    return not _waiting and "torch" in sys.modules


def when_here(do: Callable[[], object]) -> None:
    """Call ``do`` now if torch is imported, or else as soon as it is, before anybody can have used it."""
    if "torch" in sys.modules:
        do()
        return
    if not _waiting:
        sys.meta_path.insert(0, _Doorman)
    _waiting.append(do)


def have_one_thread() -> None:
    """Its own pools would have as many as the machine has cores, in each worker."""
    import torch

    torch.set_num_threads(1)


class _Doorman:
    """Has the others find torch, and tells of its arrival."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "torch":
            return None
        others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not _Doorman)
        spec = next((spec for spec in others if spec is not None), None)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: _tell(load(module))  # type: ignore[method-assign]
        return spec


def _tell(_: None) -> None:
    sys.meta_path.remove(_Doorman)
    waiting, _waiting[:] = list(_waiting), []
    for do in waiting:
        do()
