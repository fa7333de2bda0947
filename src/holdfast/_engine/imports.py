"""Why a worker cannot import what the trainer has imported."""

from __future__ import annotations

import os
import re
import sys
from importlib.machinery import PathFinder

import psutil

_NOT_IN_MODULE = (
    re.compile(r"Can't get attribute '(?P<what>.+?)' on <module '(?P<module>.+?)'(?: from '(?P<file>.+?)')?"),
    re.compile(r"cannot import name '(?P<what>.+?)' from '(?P<module>.+?)' \((?P<file>.+?)\)"),
)


def explain_import(error: BaseException) -> str:
    """What differs between the worker that raised this and the trainer; empty when it is not about an import."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return _no_module(error.name)
    if isinstance(error, ImportError | AttributeError):
        for pattern in _NOT_IN_MODULE:
            if found := pattern.match(str(error)):
                return _not_in_module(**found.groupdict())
    return ""


def _no_module(name: str) -> str:
    module = sys.modules.get(name)
    if module is None:
        return f"{name} is not imported in the trainer either"
    file = getattr(module, "__file__", None) or ", ".join(getattr(module, "__path__", ()))
    if not file:
        return f"{name} was made at run time and has no file: it exists in the trainer only"
    if not os.path.exists(file):
        return f"{name} was imported in the trainer from {file}, which is gone"
    return f"{name} was imported in the trainer from {file}{_unreachable(name)}"


def _unreachable(name: str) -> str:
    parent = name.rpartition(".")[0]
    path = getattr(sys.modules.get(parent), "__path__", ()) if parent else sys.path
    return "" if PathFinder.find_spec(name, list(path)) else f", where {parent or 'sys.path'} does not lead now"


def _not_in_module(what: str, module: str, file: str | None) -> str:
    ours = sys.modules.get(module)
    if ours is None:
        return f"{module} is not imported in the trainer"
    here = getattr(ours, "__file__", None) or ""
    if here and file and os.path.realpath(here) != os.path.realpath(file):
        return f"the worker imported {module} from {file}, the trainer from {here}"
    if not hasattr(ours, what.split(".")[0]):
        return f"{module} has no {what} in the trainer either"
    if os.path.exists(here) and os.stat(here).st_mtime > psutil.Process().create_time():
        return f"{module} has {what} in the trainer, which imported {here} before that file was changed"
    return f"{module} has {what} in the trainer only: it was put there at run time"
