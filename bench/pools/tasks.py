"""What workers are asked to do. Nothing heavy is imported before it is needed: workers may be spawned."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

MB = 1 << 20
STEP = 4096
_kept: dict[str, Any] = {}


def same(value: Any) -> Any:
    return value


def own_pid(_: Any = None) -> int:
    return os.getpid()


def short(number: int) -> int:
    time.sleep(0.003)
    return number * 2


def new(kind: str, size: int) -> Any:
    if kind == "numpy":
        import numpy

        return numpy.ones(size, numpy.uint8)
    import torch

    return torch.ones(size, dtype=torch.uint8)


def touched(value: Any) -> int:
    """Looks at a little of it, as a task would."""
    return int(value[::STEP].sum())


def made(kind: str, size: int) -> Any:
    """A new value each time, as a function makes one: torch copies nothing of one that it has sent before."""
    if kind not in _kept:
        _kept[kind] = new(kind, size)
    return _kept[kind].copy() if kind == "numpy" else _kept[kind].clone()


def prepare(what: tuple[str, int]) -> None:
    """So that `made` has something to copy from. It waits a little, so that each worker gets one."""
    made(*what)
    time.sleep(0.02)


def killed_once(what: tuple[int, str]) -> int:
    """Task 3 is killed with its worker when it is first tried, which the file tells."""
    number, path = what
    if number == 3 and not _tried(path):
        os.kill(os.getpid(), signal.SIGKILL)
    return short(number)


def hangs_once(what: tuple[int, str]) -> int:
    number, path = what
    if number == 3 and not _tried(path):
        time.sleep(3600)
    return short(number)


def _tried(path: str) -> bool:
    try:
        Path(path).touch(exist_ok=False)
    except FileExistsError:
        return True
    return False
