"""What is imported only where it is used: functions by their names."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def named(name: str) -> Any:
    """``package.module:function``."""
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)
