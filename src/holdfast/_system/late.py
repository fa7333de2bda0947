"""Modules that a process may do without: what is to be done as soon as one is there.

To import torch takes a second and 150 MB, numpy a twentieth of a second. A worker of a pool whose functions have
nothing to do with them should not wait for that, and behave as all others do if they come after all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib.machinery import ModuleSpec
from types import ModuleType

from .interpreter import one_thread_each

_waiting: dict[str, list[Callable[[], object]]] = {}  # by module
_alone = False  # whether libraries are to have no threads of their own


def is_here(name: str) -> bool:
    """Whether it is imported, and all is done that waited for it."""
    return name in sys.modules and name not in _waiting


def when_here(name: str, do: Callable[[], object]) -> None:
    """Call ``do`` now if that module is imported, or else as soon as it is, before anybody can have used it."""
    if name in sys.modules:
        do()
        return
    if not _waiting:
        sys.meta_path.insert(0, _Doorman)
    _waiting.setdefault(name, []).append(do)


def have_one_thread() -> None:
    """In a worker. What is waited for is imported without pools of threads: each worker would have one of its own."""
    global _alone
    _alone = True
    when_here("torch", _have_torch_use_one)


def _have_torch_use_one() -> None:
    import torch

    torch.set_num_threads(1)


class _Doorman:
    """Has the others find what is waited for, and tells of its arrival."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _waiting:
            return None
        others = [finder for finder in sys.meta_path if finder is not _Doorman and hasattr(finder, "find_spec")]
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_tell(module: ModuleType) -> None:
                with one_thread_each() if _alone else nullcontext():
                    load(module)
                _tell(name)

            spec.loader.exec_module = load_and_tell  # type: ignore[method-assign]
        return spec


def _tell(name: str) -> None:
    waiting = _waiting.pop(name, [])
    if not _waiting and _Doorman in sys.meta_path:
        sys.meta_path.remove(_Doorman)
    for do in waiting:
        do()
