"""A script or a module as ``__main__``, as ``python script.py`` and ``python -m module`` run it, inside this process.

Not ``runpy``: it takes ``__main__`` away when the program has ended or raised, and what was made by then still needs
it; a data set whose class is in the script, for example.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path

from .mistake import Mistake


def run_script(path: str, arguments: Sequence[str] = ()) -> None:
    """Whatever it raises, this does, ``SystemExit`` too."""
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {error.strerror}") from None
    sys.path[0:1] = [os.path.dirname(os.path.abspath(path))]
    _run(source, path, None, [path, *arguments])


def run_module(name: str, arguments: Sequence[str] = ()) -> None:
    sys.path[0:1] = [os.getcwd()]
    spec = _spec(name)
    if spec.submodule_search_locations is not None:  # a package
        spec = _spec(f"{name}.__main__")
    source = Path(spec.origin or "").read_bytes()
    _run(source, spec.origin or name, spec, [spec.origin or name, *arguments])


def _spec(name: str) -> ModuleSpec:
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        raise Mistake(f"there is no module named {error.name}", f"looked for in {', '.join(sys.path[:3])} …") from None
    if spec is None or (spec.submodule_search_locations is None and not spec.has_location):
        raise Mistake(f"there is no module named {name} that can be run", f"looked for in {', '.join(sys.path[:3])} …")
    return spec


def _run(source: bytes, path: str, spec: ModuleSpec | None, arguments: list[str]) -> None:
    try:
        code = compile(source, path, "exec")
    except (SyntaxError, ValueError) as error:
        raise Mistake(f"{path} is not a Python program: {error}") from None
    module = types.ModuleType("__main__")
    module.__file__, module.__spec__ = path, spec
    module.__dict__["__cached__"] = None
    if spec is not None:
        module.__package__ = spec.parent
    sys.modules["__main__"] = module
    sys.argv[:] = arguments
    exec(code, module.__dict__)
