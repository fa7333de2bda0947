"""A call when a module has been imported, by whoever imports it, and none in a program that never does.

Its classes are not said to be a finder and a loader: ``importlib.abc`` takes 10 ms to import, in each interpreter.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def when_imported(name: str, call: Callable[[], None]) -> None:
    """At once where it is there already. ``call`` comes before the import statement of whoever imports it is over."""
    if name in sys.modules:
        call()
    else:
        sys.meta_path.insert(0, _Finder(name, call))


class _Finder:
    """Finds what the others find, and has it loaded by a loader that calls. Gone once it is imported: not when it is
    found, as many only want to know whether there is such a module."""

    def __init__(self, name: str, call: Callable[[], None]) -> None:
        self._name, self._call = name, call

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        others = (finder.find_spec for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        spec = next((found for find in others if (found := find(name, path, target)) is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._loaded)  # type: ignore[assignment]
        return spec

    def _loaded(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self._call()


class _Loader:
    """The one that it is made of, for all that anybody can see; and that is what the module has in the end."""

    def __init__(self, loader: Any, loaded: Callable[[], None]) -> None:
        self._loader, self._loaded = loader, loaded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._loaded()
